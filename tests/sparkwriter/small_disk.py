"""A database's tables on a small disk of their own, which gets full."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkwriter.jdbc.session import Session
from tests.sparkwriter.databases import Server


class NoMount(Exception):
    """This user may not mount a disk."""


@contextmanager
def small_disk(server: Server, folder: Path, schema: str, size: str) -> Iterator[Path]:
    """Gives a file system of the size, in memory, that all tables go to which are made meanwhile.

    In PostgreSQL it is the default tablespace, in MySQL and MariaDB the folder of the schema, which
    is made. Its tables are gone afterwards. Raises NoMount.
    """
    session = server.connect()
    try:
        if server.is_postgres:
            yield from _tablespace(session, folder, schema, size)
        else:
            yield from _schema(session, schema, size)
    finally:
        session.close()


def _tablespace(session: Session, folder: Path, schema: str, size: str) -> Iterator[Path]:
    folder.mkdir()
    for parent in (folder, *folder.parents)[:3]:
        parent.chmod(0o755)  # the server is a user of its own
    _mount(folder, size)
    try:
        shutil.chown(folder, "postgres", "postgres")
        session.run(f"CREATE TABLESPACE {schema} LOCATION '{folder}'")
        session.run(f"GRANT CREATE ON TABLESPACE {schema} TO PUBLIC")
        session.run(f"ALTER SYSTEM SET default_tablespace = {schema}")
        session.rows("SELECT pg_reload_conf()")
        try:
            yield folder
        finally:
            session.run("ALTER SYSTEM RESET default_tablespace")
            session.rows("SELECT pg_reload_conf()")
        session.run(f"DROP SCHEMA {schema} CASCADE")
        session.run(f"DROP TABLESPACE {schema}")
    finally:
        _unmount(folder)


def _schema(session: Session, schema: str, size: str) -> Iterator[Path]:
    session.run(f"CREATE SCHEMA {schema}")
    ((data,),) = session.rows("SELECT @@datadir")
    folder = Path(data) / schema
    _mount(folder, size)
    try:
        yield folder
        tables = session.rows(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (schema,)
        )
        for (name,) in tables:
            session.run(f"DROP TABLE {schema}.{name}")
    finally:
        _unmount(folder)


def _mount(folder: Path, size: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoMount(f"this user can't mount a disk of its own: {done.stderr.strip()}")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Take all the room that is left; the file that does so."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 65536
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    return ballast

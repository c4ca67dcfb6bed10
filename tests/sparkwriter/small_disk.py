"""A database's tables on a small disk of their own, which gets full."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sparkwriter.databases import Server


class NoMount(Exception):
    """This user may not mount a disk."""


@contextmanager
def small_disk(server: Server, schema: str, size: str) -> Iterator[Path]:
    """Gives a file system of the size, in memory, that all tables go to which are made meanwhile.

    In PostgreSQL it is the default tablespace, whose tables go elsewhere afterwards; in MySQL and
    MariaDB the folder of the schema, which is made, and whose tables are dropped. Raises NoMount.
    """
    yield from (_tablespace if server.is_postgres else _schema)(server, schema, size)


def _tablespace(server: Server, schema: str, size: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="binlogd-disk-") as name:
        folder = Path(name)
        _mount(folder, size)
        try:
            shutil.chown(folder, "postgres", "postgres")
            _run(
                server,
                f"CREATE TABLESPACE {schema} LOCATION '{folder}'",
                f"GRANT CREATE ON TABLESPACE {schema} TO PUBLIC",
                f"ALTER SYSTEM SET default_tablespace = {schema}",
                "SELECT pg_reload_conf()",
            )
            try:
                yield folder
            finally:
                reset = "ALTER SYSTEM RESET default_tablespace"
                _run(server, reset, "SELECT pg_reload_conf()")
            away = f"IN TABLESPACE {schema} SET TABLESPACE pg_default"
            _run(server, f"ALTER TABLE ALL {away}", f"ALTER INDEX ALL {away}")
            _run(server, f"DROP TABLESPACE {schema}")
        finally:
            _unmount(folder)


def _schema(server: Server, schema: str, size: str) -> Iterator[Path]:
    _run(server, f"CREATE SCHEMA {schema}")
    session = server.connect()
    ((data,),) = session.rows("SELECT @@datadir")
    session.close()
    folder = Path(data) / schema
    _mount(folder, size)
    try:
        yield folder
        session = server.connect()
        tables = session.rows(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (schema,)
        )
        session.close()
        _run(server, *(f"DROP TABLE {schema}.{name}" for (name,) in tables))
    finally:
        _unmount(folder)


def _run(server: Server, *statements: str) -> None:
    """On a connection of its own: a full disk may have ended the server meanwhile."""
    session = server.connect()
    try:
        for statement in statements:
            session.run(statement)
    finally:
        session.close()


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

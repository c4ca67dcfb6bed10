"""Databases that the demo can fill, each a server of this machine; and their tables read back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from changes.model.model import TargetName
from databases.base.url import parse_url
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from sparkwriter.kit.store import Absent
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.stored import read_table

KINDS = {"postgres": Postgres, "mariadb": MariaDb}
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"


@contextmanager
def database(kind: str) -> Iterator[tuple[str, str]]:
    """Start a server; gives its URL and its user. Raises ProgramError."""
    # PostgreSQL runs as a user of its own, who must reach it.
    folder = Path(tempfile.mkdtemp(prefix=f"binlogd-{kind}-"))
    folder.chmod(0o755)
    try:
        server = KINDS[kind](folder / "server")
        try:
            server.start()
            if isinstance(server, Postgres):
                yield f"postgresql://127.0.0.1:{server.port}/postgres", "postgres"
            else:
                yield f"mariadb://127.0.0.1:{server.port}/", "root"
        finally:
            server.program.kill()
    finally:
        shutil.rmtree(folder)


def read_database(url: str, user: str, namespace: str) -> dict[str, pa.Table]:
    """Every table of a namespace."""
    store = JdbcStore(lambda: connect(parse_url(url), user, None), "binlogd")
    found: dict[str, pa.Table] = {}
    try:
        for (name,) in store.session.rows(_TABLES, (namespace,)):
            seen = store.look(TargetName("copy", namespace, name))
            assert not isinstance(seen, Absent)
            found[name] = read_table(store.session, seen)
    finally:
        store.close()
    return found

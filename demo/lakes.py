"""What the demo can fill: a lake in a folder or behind a REST catalog on S3, or a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from actors.runtime.java import CHECKOUT
from demo.databases import KINDS, database, read_database
from demo.lake import embedded, open_session, read_tables
from demo.servers.s3_lake import S3Lake
from demo.shop import DATABASE


class DemoLake(NamedTuple):
    """A lake, or a database, that can be written. ``read`` gives its tables."""

    read: Callable[[], dict[str, pa.Table]]
    config: Path
    """The daemon's configuration for it."""
    environment: Mapping[str, str]
    """What that configuration takes from the environment."""


CHANGES = {"folder": 600_000, "s3": 60_000, "postgres": 200_000, "mariadb": 200_000}
"""How many changes the demo makes for each: moto, a store in Python, takes a share of the machine
that grows with every file."""


@contextmanager
def _folder(var: Path) -> Iterator[DemoLake]:
    yield DemoLake(partial(_read, var, embedded(var)), CHECKOUT / "demo" / "config.toml", {})


@contextmanager
def _s3(var: Path) -> Iterator[DemoLake]:
    with S3Lake(var / "servers") as lake:
        addresses = {
            "BINLOGD_CATALOG": lake.rest.uri,
            "BINLOGD_S3": lake.store.endpoint,
            "AWS_ACCESS_KEY_ID": lake.store.properties()["s3.access-key-id"],
            "AWS_SECRET_ACCESS_KEY": lake.store.properties()["s3.secret-access-key"],
        }
        read = partial(_read, var, lake.catalog())
        yield DemoLake(read, CHECKOUT / "demo" / "s3.toml", addresses)


def _read(var: Path, catalog: Mapping[str, str]) -> dict[str, pa.Table]:
    session = open_session(var, catalog)
    try:
        return read_tables(session, DATABASE)
    finally:
        session.stop()


@contextmanager
def _database(kind: str, var: Path) -> Iterator[DemoLake]:
    with database(kind) as (url, user):
        environment = {"BINLOGD_URL": url, "BINLOGD_USER": user}
        read = partial(read_database, url, user, DATABASE)
        yield DemoLake(read, CHECKOUT / "demo" / "database.toml", environment)


LAKES: Mapping[str, Callable[[Path], AbstractContextManager[DemoLake]]] = {
    "folder": _folder,
    "s3": _s3,
    **{kind: partial(_database, kind) for kind in KINDS},
}
"""By name: each starts the servers that it needs, and ends them. Raises ProgramError."""

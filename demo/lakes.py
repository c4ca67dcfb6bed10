"""The lakes that the demo can fill: a folder of this machine, or object store and REST catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from demo.lake import embedded
from demo.servers.s3_lake import S3Lake
from sparkwriter.session.java import CHECKOUT


class DemoLake(NamedTuple):
    """A lake that can be written."""

    catalog: Mapping[str, str]
    config: Path
    """The daemon's configuration for it."""
    environment: Mapping[str, str]
    """What that configuration takes from the environment."""


CHANGES = {"folder": 600_000, "s3": 60_000}
"""How many changes the demo makes for each: moto, a store in Python, takes a share of the machine
that grows with every file."""


@contextmanager
def _folder(var: Path) -> Iterator[DemoLake]:
    yield DemoLake(embedded(var), CHECKOUT / "config.toml", {})


@contextmanager
def _s3(var: Path) -> Iterator[DemoLake]:
    with S3Lake(var / "servers") as lake:
        addresses = {
            "BINLOGD_CATALOG": lake.rest.uri,
            "BINLOGD_S3": lake.store.endpoint,
            "AWS_ACCESS_KEY_ID": lake.store.properties()["s3.access-key-id"],
            "AWS_SECRET_ACCESS_KEY": lake.store.properties()["s3.secret-access-key"],
        }
        yield DemoLake(lake.catalog(), CHECKOUT / "demo" / "s3.toml", addresses)


LAKES: Mapping[str, Callable[[Path], AbstractContextManager[DemoLake]]] = {
    "folder": _folder,
    "s3": _s3,
}
"""By name: each starts the servers that it needs, and ends them. Raises ServerError."""

"""The lakes that tests run on: a catalog and a storage each, of real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.servers.rest import RestCatalog
from demo.servers.s3 import BUCKET, ObjectStore
from tests.lake.servers.hdfs import SETTINGS as HDFS_SETTINGS
from tests.lake.servers.hdfs import Hdfs
from tests.lake.servers.hive import Metastore
from tests.lake.servers.postgresql import CatalogDatabase

_STAGING = f"s3://{BUCKET}/staging"


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake, whose servers run."""

    name: str
    catalog: Mapping[str, str]
    """The catalog's properties, as a configuration has them."""
    storage: str
    """``folder``, ``s3`` or ``hdfs``."""
    folder: Path | None
    """The warehouse, where it is a folder of this machine."""
    staging: str
    """A folder for staged files in the same storage: its URI."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark without which it can't be reached."""
    servers: Mapping[str, Any] = field(default_factory=dict)
    """Those that run for it, by what they are: ``catalog``, ``storage``."""


@contextmanager
def _jdbc_folder(folder: Path) -> Iterator[Lake]:
    catalog = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": str(folder),
    }
    yield Lake("jdbc-folder", catalog, "folder", folder, (folder / "staging").as_uri())


@contextmanager
def _rest_folder(folder: Path) -> Iterator[Lake]:
    warehouse = folder / "warehouse"
    with RestCatalog(folder / "rest", str(warehouse), {}) as rest:
        catalog = {"type": "rest", "uri": rest.uri}
        staging = (folder / "staging").as_uri()
        yield Lake("rest-folder", catalog, "folder", warehouse, staging, servers={"catalog": rest})


@contextmanager
def _rest_s3(folder: Path) -> Iterator[Lake]:
    with ObjectStore(folder / "s3") as store:
        warehouse = f"s3://{BUCKET}/warehouse"
        with RestCatalog(folder / "rest", warehouse, store.properties()) as rest:
            catalog = {"type": "rest", "uri": rest.uri, **store.properties()}
            servers = {"catalog": rest, "storage": store}
            yield Lake("rest-s3", catalog, "s3", None, _STAGING, servers=servers)


@contextmanager
def _hive_hdfs(folder: Path) -> Iterator[Lake]:
    with Hdfs(folder / "hdfs") as hdfs:
        warehouse = f"{hdfs.uri}/warehouse"
        with Metastore(folder / "metastore", warehouse, HDFS_SETTINGS) as metastore:
            catalog = {"type": "hive", "uri": metastore.uri, "warehouse": warehouse}
            conf = {f"spark.hadoop.{name}": value for name, value in HDFS_SETTINGS.items()}
            servers = {"catalog": metastore, "storage": hdfs}
            yield Lake("hive-hdfs", catalog, "hdfs", None, f"{hdfs.uri}/staging", conf, servers)


@contextmanager
def _postgresql_s3(folder: Path) -> Iterator[Lake]:
    with ObjectStore(folder / "s3") as store, CatalogDatabase() as database:
        catalog = {
            "type": "jdbc",
            "uri": database.uri,
            "jdbc.schema-version": "V1",
            "jdbc.user": "postgres",
            "warehouse": f"s3://{BUCKET}/warehouse",
            **store.properties(),
        }
        servers = {"catalog": database, "storage": store}
        yield Lake("postgresql-s3", catalog, "s3", None, _STAGING, servers=servers)


LAKES: Mapping[str, Callable[[Path], AbstractContextManager[Lake]]] = {
    "jdbc-folder": _jdbc_folder,
    "rest-folder": _rest_folder,
    "rest-s3": _rest_s3,
    "hive-hdfs": _hive_hdfs,
    "postgresql-s3": _postgresql_s3,
}
"""By name: each starts its servers in a folder, and ends them. Skips or fails what lacks one."""

"""Iceberg's tables as a configured sink: catalog, warehouse, upkeep, and writers on a session."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from changes.routes.routing import Route
from settings.rotation import RotatedSettings, SecretSettings
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.ownership import this_process
from sparkwriter.iceberg.probe import check_warehouse, probe_catalog
from sparkwriter.iceberg.probe_together import probe_together
from sparkwriter.iceberg.queries import LakeQueries
from sparkwriter.iceberg.readers import lake_readers
from sparkwriter.iceberg.section import IcebergSection
from sparkwriter.iceberg.sink import IcebergWriter, check_catalog
from sparkwriter.iceberg.staged_source import SharedStaging
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.kit.port import Sessions, Sink
from sparkwriter.kit.readers import HowToRead
from sparkwriter.kit.sqlite_file import try_file
from sparkwriter.session.durable_files import CLASS
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.section import SparkSection
from sparkwriter.session.session import FILE_SYSTEM, is_local

CATALOG_TYPES: Mapping[str, tuple[str, ...]] = {
    "jdbc": ("uri", "warehouse"),
    "hadoop": ("warehouse",),
    "rest": ("uri",),
    "hive": (),
    "glue": (),
    "nessie": (),
    "bigquery": (),
}
"""What Iceberg's ``type`` may be, and without what such a catalog can't be opened."""

_HADOOP = (
    "a hadoop catalog is for one daemon: its commit renames a file, so two members of a group, or "
    "another tool that writes, may overwrite each other's commits. A pipeline stops when its group "
    "has another member. And it renames no table"
)

_SINGLE_WRITER = (
    "the commit of a hadoop catalog renames a file, so two writers may overwrite each other's "
    "commits: use a catalog of type rest, jdbc or hive, or run one daemon"
)

_HADOOP_CATALOG = "org.apache.iceberg.hadoop.HadoopCatalog"


class IcebergSink(Sink):
    """What is known of its tables outlives a session."""

    def __init__(self, name: str, section: IcebergSection, config: SecretSettings) -> None:
        self._name = name
        self._section = section
        self._config = config
        self._compactions = Compactions(section.compaction)
        self._upkeep: Upkeep | None = None
        self._sessions: Sessions | None = None
        self._staging: SharedStaging | None = None

    def problems(self) -> Iterator[str]:
        """What Iceberg would say only once Spark has started."""
        catalog = self._section.catalog
        if "catalog-impl" in catalog:  # a custom class, which knows what it needs
            return
        kind = catalog.get("type", "hive").lower()
        if kind not in CATALOG_TYPES:
            known = ", ".join(sorted(CATALOG_TYPES))
            yield (
                f"catalog.type: {catalog['type']!r} is none of {known}; "
                "others are named by catalog-impl"
            )
        for key in CATALOG_TYPES.get(kind, ()):
            if not catalog.get(key):
                yield f"catalog.{key}: is missing; a catalog of type {kind} needs it"

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """A catalog for one daemon only; files that are not synced to disk."""
        if self._is_hadoop:
            yield f"catalog.type: {_HADOOP}"
        local = is_local(spark.master)
        if local and spark.conf.get(FILE_SYSTEM, CLASS) == CLASS:
            return
        if _is_folder(self._section.catalog.get("warehouse", "")):
            why = (
                f"files of {spark.conf[FILE_SYSTEM]}"
                if local
                else "the files that a cluster writes"
            )
            yield (
                f"catalog.warehouse: is a folder, and {why} are not waited for: after a"
                " power cut a table may name some that are empty or not there"
            )

    @property
    def single_writer(self) -> str | None:
        """A hadoop catalog has no compare-and-set."""
        return _SINGLE_WRITER if self._is_hadoop else None

    @property
    def _is_hadoop(self) -> bool:
        catalog = self._section.catalog
        if "catalog-impl" in catalog:
            return catalog["catalog-impl"] == _HADOOP_CATALOG
        return catalog.get("type", "").lower() == "hadoop"

    def probe(self) -> bool:
        """The warehouse, if it is a folder, and the catalog, if it is a file of SQLite."""
        catalog = self._section.catalog
        check_warehouse(self._name, catalog)
        uri = catalog.get("uri", "")
        if catalog.get("type") != "jdbc" or not uri.startswith("jdbc:sqlite:"):
            return False
        path = Path(uri.removeprefix("jdbc:sqlite:").removeprefix("file:").split("?")[0])
        try_file(f"sink {self._name}: the catalog", path)
        return True

    def catalog(self) -> Mapping[str, str] | None:
        """As Spark takes it."""
        return self._section.catalog

    def keeps_names(self) -> str | None:
        """A hadoop catalog's are folders."""
        if self._is_hadoop:
            return "a hadoop catalog can't give a table another's name: choose another type"
        return None

    def queries(self) -> LakeQueries:
        """By DuckDB, which reads what is on this machine."""
        return LakeQueries(self._name, self._section.catalog)

    def readers(self, target: TargetName) -> Iterator[HowToRead]:
        """By what reads its kind of catalog."""
        return lake_readers(self._name, self._section.catalog, target)

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Open the catalog."""
        assert sessions is not None
        check_catalog(sessions.now().spark, self._name, self._section.catalog)
        settings = self._section.maintenance
        self._upkeep = Upkeep(this_process(owner), settings)
        self._sessions = sessions
        if sessions.shared_staging is not None:
            self._staging = SharedStaging(f"{sessions.shared_staging}/{owner}")

    def try_out(self, sessions: Sessions | None, routes: Iterable[Route]) -> Iterator[str]:
        """The catalog, its storage, and targets whose names are known."""
        assert sessions is not None
        spark, catalog = sessions.now().spark, self._section.catalog
        try:
            check_catalog(spark, self._name, catalog)
        except SinkUnavailable as error:
            yield str(error)
            return
        own = (route for route in routes if route.template.split(".")[0] == self._name)
        targets = dict.fromkeys(target for route in own for target in route.known_targets())
        yield from probe_catalog(spark, self._name, catalog, targets)

    def try_together(self, sessions: Sessions | None) -> Iterator[str]:
        """With two tables of its own."""
        assert sessions is not None
        yield from probe_together(sessions.now().spark, self._name, self._section.catalog)

    def writer(self) -> ResettableSink:
        """With a session of its own: snapshot properties must not leak between writers."""
        assert self._sessions is not None
        rotated = RotatedSettings(self._config, self._section.settings(), self._name)
        make = partial(self._on, rotated)
        return self._sessions.sink(make, self._section.write_timeout_s, rotated.outdated)

    def prepare_stop(self) -> None:
        """Cancel compactions; no other starts. On a thread of its own, because the JVM may hang."""
        threading.Thread(target=self._compactions.stop, daemon=True).start()

    def _on(self, rotated: RotatedSettings, jvm: SparkJvm) -> IcebergWriter:
        settings = {
            f"spark.sql.{key.replace('catalog.', f'catalog.{self._name}.', 1)}": value
            for key, value in rotated.take().items()
        }
        return IcebergWriter(jvm.spark, self._upkeep, self._compactions, self._staging, settings)


def _is_folder(warehouse: str) -> bool:
    return bool(warehouse) and not re.match(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*:", warehouse)


def make_sink(name: str, section: IcebergSection, config: SecretSettings) -> Sink:
    """See ``sparkwriter.sections``."""
    return IcebergSink(name, section, config)

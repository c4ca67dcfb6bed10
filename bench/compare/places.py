"""Where the compared tables lie: a folder of this machine, or a REST catalog over S3 (``LAKE=s3``).

Each run begins with a lake of its own, so that no contestant finds what another has left.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.compare.measure import family
from demo.servers.rest import RestCatalog
from demo.servers.s3 import BUCKET, ObjectStore

_REQUEST = re.compile(r'"(?:GET|HEAD|PUT|POST|DELETE) [^"]* HTTP/1')
"""A request in the log of the object store, or of the catalog."""


class Served(NamedTuple):
    """What the lake's own servers did for a run so far."""

    requests: int | None = 0
    """Of the object store; None where there is none."""
    cpu_s: float = 0.0


class Place(ABC):
    """Catalogs for the runs of one comparison, in ``var``. One thread's."""

    extras: Sequence[str] = ()
    """Jars that its catalogs need."""

    def __init__(self, var: Path) -> None:
        self.var = var

    @abstractmethod
    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        """A workload begins: ``make`` makes its tables in a catalog, None where it has none."""

    @abstractmethod
    @contextmanager
    def lake(self, prepared: bool) -> Iterator[dict[str, str]]:
        """A lake for one run, with the workload's tables in it: the catalog's properties."""

    def served(self) -> Served | None:
        """What its servers did since ``lake``; None where it has none."""
        return None

    def close(self) -> None:  # noqa: B027 - most have nothing
        """The workload is over: end what outlasts a run."""


class Folder(Place):
    """JdbcCatalog on SQLite. Always at the same path, since Iceberg's metadata has whole paths and
    prepared tables are copied there."""

    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        for folder in (self._prepared, self._catalog):
            shutil.rmtree(folder, ignore_errors=True)
        self._catalog.mkdir()
        if make is not None:
            make(self._properties)
        self._catalog.replace(self._prepared)

    @contextmanager
    def lake(self, prepared: bool) -> Iterator[dict[str, str]]:
        shutil.rmtree(self._catalog, ignore_errors=True)
        if prepared:
            shutil.copytree(self._prepared, self._catalog)
        else:
            self._catalog.mkdir()
        yield self._properties

    @property
    def _catalog(self) -> Path:
        return self.var / "lake"

    @property
    def _prepared(self) -> Path:
        return self.var / "prepared"

    @property
    def _properties(self) -> dict[str, str]:
        return {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{self._catalog / 'catalog.db'}",
            "jdbc.schema-version": "V1",
            "warehouse": str(self._catalog),
        }


class RestOnS3(Place):
    """Iceberg's REST catalog over an object store in memory, both started for each run."""

    extras = ("s3",)

    def __init__(self, var: Path) -> None:
        super().__init__(var)
        self._make: Callable[[dict[str, str]], None] | None = None
        self._number = 0
        self._servers: tuple[ObjectStore, RestCatalog] | None = None
        self._before = Served()

    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        self._make = make

    @contextmanager
    def lake(self, prepared: bool) -> Iterator[dict[str, str]]:
        self._number += 1
        folder, warehouse = self.var / f"s3-{self._number}", f"s3://{BUCKET}/warehouse"
        with (
            ObjectStore(folder / "s3") as store,
            RestCatalog(folder / "rest", warehouse, store.properties()) as catalog,
        ):
            properties = {"type": "rest", "uri": catalog.uri, **store.properties()}
            if prepared and self._make is not None:
                self._make(properties)
            self._servers = store, catalog
            self._before = self._done()
            try:
                yield properties
            finally:
                self._servers = None

    def served(self) -> Served | None:
        (now, now_s), (before, before_s) = self._done(), self._before
        assert now is not None
        assert before is not None
        return Served(now - before, now_s - before_s)

    def _done(self) -> Served:
        """Since the servers were started. The object store's requests alone: the catalog keeps no
        log of its own."""
        assert self._servers is not None
        store, catalog = self._servers
        text = store.program.log.read_text(errors="replace")
        pids = (store.program.pid, catalog.program.pid)
        used = sum(process.cpu_s for pid in pids for process in family(pid))
        return Served(len(_REQUEST.findall(text)), used)


PLACES: dict[str, type[Place]] = {"": Folder, "s3": RestOnS3}
"""By what LAKE says."""

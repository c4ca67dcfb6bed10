"""The sinks that the contract is asked of, each as ``Sink``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

from actors.contract.ports import Swaps
from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent, TableStore
from sparkwriter.sections import KINDS, make_sink
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.databases import JdbcTables

_numbers = itertools.count()
Row = tuple[object, ...]


def is_file(section: Any) -> bool:
    """Whether its ``path`` is the file."""
    return getattr(section.model_fields.get("path"), "annotation", None) is Path


FILES = {kind: section for kind, section in KINDS.items() if is_file(section)}
"""Sinks that are a file of tables: the sections of their kinds."""


def open_file(kind: str, path: Path) -> Any:
    """One more store of a file."""
    section = FILES[kind].model_validate({"kind": kind, "path": path})
    writer = make_sink("lake", section, None).writer()
    assert isinstance(writer, LedgeredWriter)
    return writer.tables


class Sink(Protocol):
    """A sink with as many members as are asked for."""

    def store(self) -> TableStore[Any]:
        """One more member's store, over the same tables."""
        ...

    def swaps(self) -> Swaps:
        """One more member, for exchanges."""
        ...

    def read(self, target: TargetName) -> pa.Table:
        """A table's rows as a reader finds them."""
        ...


class File:
    """A file of tables. ``opened`` makes one more store of it."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened
        self._made: list[Any] = []

    def store(self) -> Any:
        self._made.append(self._opened())
        return self._made[-1]

    def swaps(self) -> Swaps:
        return LedgeredWriter(self.store())

    def read(self, target: TargetName) -> pa.Table:
        return self.store().read(target)

    def close(self) -> None:
        for store in self._made:
            store.close()


class Iceberg:
    """The lake of the tests' Spark session."""

    def __init__(self, spark: Any, staging: Any) -> None:
        self._spark, self._staging = spark, staging

    def store(self) -> TableStore[Any]:
        from sparkwriter.iceberg.store import IcebergStore

        return IcebergStore(self._spark, shared_staging=self._staging)

    def swaps(self) -> Swaps:
        from sparkwriter.iceberg.sink import IcebergWriter

        return IcebergWriter(self._spark, shared_staging=self._staging)

    def read(self, target: TargetName) -> pa.Table:
        name = ".".join(f"`{part}`" for part in target)
        return self._spark.newSession().table(name).toArrow()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An end at each step of a renaming takes Iceberg a minute. Lanes of a keyed table take MySQL
    five seconds; all the rest on it is for the tier by hand."""
    for item in items:
        if item.name.startswith("test_an_end_at_each_step") and "iceberg" in item.name:
            item.add_marker("long")
        if "[mysql" in item.name and "sink" in getattr(item, "fixturenames", ()):
            item.add_marker("long" if item.path.name == "test_contract_lanes.py" else "soak")


@pytest.fixture(
    params=[
        *FILES,
        "postgres",
        "mariadb",
        "mysql",
        pytest.param("iceberg", marks=pytest.mark.integration),
    ]
)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sink]:
    """Each sink in turn."""
    if request.param in FILES:
        made = File(partial(open_file, request.param, tmp_path / "sink.db"))
        yield made
        made.close()
    elif request.param in ("postgres", "mariadb", "mysql"):
        tables = JdbcTables(request.getfixturevalue(f"{request.param}_server"))
        yield tables
        tables.close()
    else:
        yield Iceberg(*map(request.getfixturevalue, ("spark", "shared_staging")))


@pytest.fixture
def target() -> TargetName:
    """A target that no other test uses and that does not exist yet."""
    return TargetName("lake", "contract", f"t{next(_numbers)}")


@pytest.fixture
def staging(tmp_path: Path, target: TargetName) -> Staging:
    """Batches for a table of orders: id (long), note (string), n (int)."""
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    return Staging(tmp_path, target, TableSchema(columns, ("id",)))


@pytest.fixture
def rows(sink: Sink) -> Callable[..., list[Row]]:
    """A table's rows, sorted, of the columns that are named or all."""

    def read(target: TargetName, *columns: str) -> list[Row]:
        table = sink.read(target)
        chosen = table.select(list(columns)) if columns else table
        found = [tuple(row.values()) for row in chosen.to_pylist()]
        return sorted(found, key=lambda row: [(value is None, value) for value in row])

    return read


def exists(sink: Sink, target: TargetName) -> bool:
    """Whether the sink has a table of that name."""
    store = sink.store()
    with store.call(target):
        return not isinstance(store.look(target), Absent)

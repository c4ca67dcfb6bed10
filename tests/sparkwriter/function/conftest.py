"""A handler's sink, with the handlers of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.function.calls import StartHandler
from sparkwriter.function.process import HandlerProcess
from sparkwriter.function.store import HandlerStore
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from tests.sparkwriter.conftest import Staging

HANDLERS = str(Path(__file__).parent / "handlers")
Make = Callable[..., HandlerStore]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Make]:
    """Makes stores over one folder; their processes end with the test."""
    made: list[HandlerStore] = []

    def make(
        entry: str = "odd:apply", deadline_s: float = 60.0, memory: int = 1 << 30, **settings: str
    ) -> HandlerStore:
        start = StartHandler(entry, (HANDLERS,), {"file": str(tmp_path / "rows"), **settings})
        process = HandlerProcess(start, deadline_s, memory)
        made.append(HandlerStore(process, tmp_path / "state"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def writer(store: Make) -> Callable[..., LedgeredWriter]:
    """The same as sinks."""
    return lambda *given, **more: LedgeredWriter(store(*given, **more))


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    """Batches for a table of orders."""
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    schema = TableSchema(columns, ("id",))
    return Staging(tmp_path, TargetName("cache", "shop", "orders"), schema)

"""A table that 0.1.0 filled from one partition goes on with several."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.contract.writes import StagedBatch
from changes.model.model import OP, Column, Mode, TableSchema, TargetName
from offsets.fence import Span
from offsets.key_partitioning import KeyPartitioning
from offsets.position import TopicPartition
from sparkwriter.kit.marks_table.sqlite_ledger import LEDGER
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore

TARGET = TargetName("copy", "shop", "orders")
SCHEMA = TableSchema((Column("id", pa.int64()), Column("v", pa.string())), ("id",))
ONE, OTHER = TopicPartition("shop", 0), TopicPartition("shop", 1)
KEYED = KeyPartitioning("shop", 6, "id integer (1)", checked=True)


def batch(folder: Path, key: int, lane: TopicPartition, span: Span) -> StagedBatch:
    """One row."""
    path = folder / f"{lane}-{span.through}.parquet"
    pq.write_table(pa.table({OP: ["U"], "id": pa.array([key]), "v": ["a"]}), path)
    return StagedBatch("b", TARGET, Mode.UPSERT, SCHEMA, {lane: span}, str(path), 1)


def test_a_ledger_of_0_1_0_takes_lanes_side_by_side(tmp_path: Path) -> None:
    """It says nothing of partitions; from the first keyed write on it does."""
    file = tmp_path / "copy.db"
    store = SqliteStore(file)
    TargetWriter(store).write(batch(tmp_path, 1, ONE, Span(-1, 4)))
    store.close()
    as_before(file)
    store = SqliteStore(file)
    writer = TargetWriter(store)
    assert writer.open(TARGET).key_partitioning is None
    for key, lane, span in ((2, OTHER, Span(-1, 7)), (3, ONE, Span(4, 5))):
        write = replace(batch(tmp_path, key, lane, span), key_partitioning=KEYED)
        state = writer.write(write)
    assert state.hwms == {ONE: 5, OTHER: 7}
    assert state.key_partitioning == replace(KEYED, checked=False)
    assert store.read(TARGET)["id"].to_pylist() == [1, 2, 3]
    store.close()


def as_before(file: Path) -> None:
    """The ledger as 0.1.0 wrote it."""
    with sqlite3.connect(file) as connection:
        ((text,),) = connection.execute(f"SELECT made FROM {LEDGER}").fetchall()
        said = json.loads(text)
        assert said.pop("key_partitioning") == ""
        connection.execute(f"UPDATE {LEDGER} SET made = ?", (json.dumps(said),))
    connection.close()

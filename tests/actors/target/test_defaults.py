"""Defaults of the source that rows don't show: NULLs that came as one, inserts that lack theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from actors.contract.writes import TargetState
from changes.formats.engine.format import pack
from changes.model.model import Column, Mode, TableSchema
from changes.routes.routing import Route
from changes.routes.shaping.shape import Shape
from tests.actors.target.processor_rig import ProcessorRig, canal
from tests.actors.target.test_column_changes import FIELDS, Stream, T, row

EVENT = "nulls_may_be_defaults"
N = {"type": "double", "default": 1.5}
FILLED = FIELDS | {"n": N, "m": N}
TOLD = "db.t: NULL may have come as the column's default: n, m"


def test_a_table_is_told_once_with_its_columns(tmp_path: Path) -> None:
    """The stored rows may be right: no mark, and no change of columns either."""
    stream = Stream(tmp_path)
    for number in range(3):
        stream.send((row(number, n=1.5, m=2.5), FILLED))
    assert stream.rig.logged(EVENT) == [TOLD]
    (said,) = (entry for entry in stream.rig.logs if entry.event == EVENT)
    assert "replace.null.with.default" in said.fields["help"]
    assert (stream.reported, stream.mark) == ([], None)


def test_decoders_that_begin_again_do_not_repeat_it(tmp_path: Path) -> None:
    """It is said once in a run; a column that gets a default later is named alone."""
    stream = Stream(tmp_path)
    stream.send((row(1, n=1.5), FIELDS | {"n": N}))
    source = {"connector": "postgresql", "schema": "db", "table": "t", "ts_ms": 1}
    stream.offset += 1
    truncate = pack(None, json.dumps({"op": "t", "source": source}).encode())
    stream.rig.send("t", (stream.offset, truncate), ddl=True)
    stream.rig.settle()
    stream.send((row(2, n=1.5, m=2.5), FILLED))
    assert [what.rpartition(": ")[2] for what in stream.rig.logged(EVENT)] == ["n", "m"]


def test_a_changelog_and_tables_that_share_a_target_are_told_too(tmp_path: Path) -> None:
    """A default that was written for a NULL is wrong in any target."""
    for mode in Mode:
        routes = (Route(("*",), (), f"lake.{mode.value}.t", mode, None),)
        stream = Stream(tmp_path / mode.value, routes=routes)
        for table in ("a", "b"):
            stream.send((row(ord(table), n=1.5, m=2.5), FILLED), table=table)
        told = [what.partition(":")[0] for what in stream.rig.logged(EVENT)]
        assert told == ["db.a", "db.b"]


BARE = {"id": "1"}
BY_NAME = "lake.{database}.{table}"
ID_NAME = (Column("id", pa.int32()), Column("name", pa.string()))


@pytest.mark.parametrize("mode", [Mode.UPSERT, Mode.APPEND])
def test_a_write_says_what_its_inserts_carry(tmp_path: Path, mode: Mode) -> None:
    """MINIMAL images leave out what took its default: the sink compares with what it stores. An
    update lacks what did not change."""
    rig = ProcessorRig(tmp_path, routes=[Route(("*",), (), BY_NAME, mode)])
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    assert rig.written[-1].carried == {"id", "name"}
    rig.send("t", (2, canal("t", 1, type="UPDATE", data=[BARE], old=[{}])))
    rig.settle()
    assert rig.written[-1].carried is None
    rig.send("t", (3, canal("t", 3, data=[{"id": "3"}])), (4, canal("t", 4, "b")))
    rig.settle()
    assert rig.written[-1].carried == {"id"}


def test_inserts_lack_a_column_that_rows_behind_them_show(tmp_path: Path) -> None:
    """After a restart, of a target that has it: also in a file that waited behind a write."""
    rig = ProcessorRig(tmp_path, buffer_bytes=1)
    rig.states[T] = TargetState(TableSchema(ID_NAME, ("id",)), Mode.UPSERT)
    rig.send("t", (1, canal("t", 1, type="UPDATE", data=[BARE], old=[{}])))
    rig.write()  # the target is opened
    rig.tick()
    rig.send("t", (2, canal("t", 2, data=[{"id": "2"}])))
    rig.send("t", (3, canal("t", 3, "b")))
    rig.settle()
    assert [batch.carried for batch in rig.written] == [None, {"id"}, {"id", "name"}]


def test_inserts_of_before_a_new_column_lack_nothing(tmp_path: Path) -> None:
    """The column is reported as new."""
    rig = ProcessorRig(tmp_path)
    for offset in (1, 2):
        rig.settle()
        bare = canal("t", offset, data=[{"id": str(offset)}], mysqlType={"id": "int(11)"})
        rig.send("t", (offset, bare))
    rig.send("t", (3, canal("t", 3, "b")))
    rig.settle()
    assert rig.logged("columns_changed") == [
        "lake.db.t: column name is new up to binlog:0 offset 3"
    ]
    assert rig.written[-1].carried == {"id", "name"}


def test_columns_that_the_route_does_not_show_are_the_targets_own(tmp_path: Path) -> None:
    """The way out where a target has a column that the source never had."""
    route = Route(("*",), (), BY_NAME, Mode.UPSERT, shape=Shape(columns=("id",)))
    rig = ProcessorRig(tmp_path, routes=[route])
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    state = rig.states[T]
    assert state.schema is not None
    wide = replace(state.schema, columns=(*state.schema.columns, Column("note", pa.string())))
    rig.states[T] = replace(state, schema=wide)
    rig.start()
    rig.send("t", (2, canal("t", 2, "b")))
    rig.settle()
    assert rig.written[-1].carried == {"id", "note"}


def test_a_write_says_which_labels_an_enumeration_has(tmp_path: Path) -> None:
    """So that the target can be compared with them after a restart."""
    stream = Stream(tmp_path)
    parameters = {"allowed": "sad,ok"}
    feel = {"type": "string", "name": "io.debezium.data.Enum", "parameters": parameters}
    stream.send((row(1, feel="ok"), FIELDS | {"feel": feel}))
    assert stream.rig.written[-1].labels == {"feel": "enum('sad','ok')"}

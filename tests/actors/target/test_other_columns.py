"""Rows whose columns or key don't go together with those before: written apart, the sink judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract import messages as msg
from actors.contract.writes import TargetState
from changes.model.model import Mode
from changes.routes.routing import Route
from tests.actors.target.processor_rig import S0, ProcessorRig, canal
from tests.changes.formats import protobuf_records as wire

T, OTHER = "lake.db.t", "lake.db.other"
NUMBER = {"id": "int(11)", "name": "int(11)"}


def text(key: int, name: str = "a") -> bytes:
    return canal("t", key, name)


def number(key: int, name: str = "7", **more: Any) -> bytes:
    """The same table after a change of type that no lake can follow."""
    return canal("t", key, name, **{"mysqlType": NUMBER} | more)


def types_of(state: TargetState) -> list[pa.DataType]:
    assert state.schema is not None
    return [column.type for column in state.schema.columns]


def test_a_missing_key_that_was_configured_says_so() -> None:
    """Of one table among many the message read as if the source had lost its key."""
    route = Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, ("order_id",))
    rig = ProcessorRig(routes=(route,))
    rig.send("t", (1, text(1)))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "key column order_id is missing" in failed.reason
    assert "the configuration's `keys` names order_id as the key" in failed.reason


def test_rows_of_another_type_are_written_apart_from_those_before() -> None:
    """What came before is in the target when the sink is asked for the new columns."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, text(1)), (2, text(2)), (3, number(3)), (4, number(4)))
    rig.tick()
    while not rig.rows:
        rig.write()
    assert rig.rows[T] == {(1,): "a", (2,): "a"}
    assert types_of(rig.states[T]) == [pa.int32(), pa.string()]
    rig.settle()
    assert rig.rows[T] == {(1,): "a", (2,): "a", (3,): 7, (4,): 7}
    assert types_of(rig.states[T]) == [pa.int32(), pa.int32()]
    assert rig.heard(msg.DeadLetter) == []
    assert rig.done(T) == 4


def test_rows_of_another_type_behind_a_write_wait_for_the_staged_ones() -> None:
    """Pieces of one write have one shape: that of the old columns goes first."""
    rig = ProcessorRig(buffer_bytes=1)
    rig.send("t", (1, text(1)))
    rig.tick()
    rig.write()
    rig.tick()
    rig.send("t", (2, text(2)), (3, number(3)))
    rig.send("t", (4, number(4)))
    rig.settle()
    assert rig.rows[T] == {(1,): "a", (2,): "a", (3,): 7, (4,): 7}
    assert rig.done(T) == 4


def test_a_type_that_the_sink_can_not_follow_is_its_targets_error(tmp_path: Path) -> None:
    """No record is a dead letter for it, none counts as done but in the spill; others go on."""
    rig = ProcessorRig(tmp_path, dead_letters=True, quarantine=True)
    rig.send("t", (1, text(1)))
    rig.settle()
    rig.refusing[T] = "column name is stored as string, which can't become int"
    rig.send("t", (2, number(2)), (3, number(3)))
    rig.send("other", (4, canal("other", 4, "o")))
    rig.settle()
    assert rig.heard(msg.DeadLetter) == []
    assert rig.rows == {T: {(1,): "a"}, OTHER: {(4,): "o"}}
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert rig.heard(msg.PipelineFailed) == []


def test_a_type_that_the_sink_can_not_follow_stops_without_a_quarantine() -> None:
    """Named with what is stored and what came."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, text(1)))
    rig.settle()
    rig.refusing[T] = "column name is stored as string, which can't become int"
    rig.send("t", (2, number(2)))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "column name is stored as string, which can't become int" in failed.reason
    assert rig.done(T) == 1


def test_a_table_that_changes_its_key_is_judged_by_the_sink() -> None:
    """The new key comes with a write of its own; a real table refuses it, with the command."""
    rig = ProcessorRig()
    keyed = canal("t", 2, "b", pkNames=["id", "name"])
    rig.send("t", (1, text(1)), (2, keyed))
    rig.settle()
    schema = rig.states[T].schema
    assert schema is not None
    assert schema.keys == ("id", "name")
    assert rig.rows[T] == {(1,): "a", (2, "b"): "b"}


def test_a_value_that_does_not_fit_is_still_a_bad_record() -> None:
    """Its columns are those of before; the record is the one that is wrong."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, text(1)), (2, canal("t", "x", "a")))
    rig.settle()
    (letter,) = rig.heard(msg.DeadLetter)
    assert (letter.offset, letter.reason) == (2, "db.t: id: 'x' is not an int(11)")


def test_a_message_that_names_no_key_is_a_bad_record_of_a_keyed_table() -> None:
    """One message says nothing of the table: it does not become a changelog for it."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, text(1)), (2, canal("t", 2, "b", pkNames=None)), (3, text(3)))
    rig.settle()
    (letter,) = rig.heard(msg.DeadLetter)
    assert (letter.offset, letter.reason) == (2, "db.t: the key was (id) and is now none")


def test_a_message_that_contradicts_itself_is_a_bad_record() -> None:
    """Whatever came before it: it is not begun anew with for ever."""

    def event(name_type: str) -> bytes:
        cells = [
            wire.canal_column("id", "1", "int(11)", key=True),
            wire.canal_column("name", "7", name_type),
        ]
        return wire.canal_rows("INSERT", [wire.canal_row((), cells)], "t", "db")

    rig = ProcessorRig(format_name="canal-protobuf", dead_letters=True)
    one = wire.canal_packet(event("varchar(9)"))
    both = wire.canal_packet(event("varchar(9)"), event("int(11)"))
    rig.send("t", (1, one), (2, both))
    rig.settle()
    (letter,) = rig.heard(msg.DeadLetter)
    assert letter.offset == 2
    assert "name: the type varchar(9) (string) can't become int(11) (int32)" in letter.reason


@pytest.mark.parametrize("first", [text(1), number(1)])
def test_partitions_that_go_away_take_the_rows_of_other_columns_along(first: bytes) -> None:
    """They are read again, and then begin anew once more."""
    rig = ProcessorRig()
    second = number(2) if first == text(1) else text(2)
    rig.send("t", (1, first), (2, second))
    rig.tick()
    rig.feed(msg.Forget((S0,), 1))
    rig.epoch = 2
    rig.send("t", (1, first), (2, second))
    rig.settle()
    assert rig.rows[T].keys() == {(1,), (2,)}
    assert rig.done(T) == 2


def test_a_column_whose_case_changes_stays_the_same_column() -> None:
    """The lake compares names without regard to case: the new spelling is written apart."""
    rig = ProcessorRig()
    capital = canal("t", 2, None, mysqlType=None, data=[{"ID": "2", "name": "b"}], pkNames=["ID"])
    rig.send("t", (1, text(1)), (2, capital), (3, text(3)))
    rig.settle()
    assert rig.done(T) == 3
    assert rig.rows[T].keys() == {(1,), ("2",), (3,)}


def test_two_columns_that_differ_by_case_alone_are_a_bad_record() -> None:
    """No lake has both."""
    rig = ProcessorRig(dead_letters=True)
    both = canal("t", 2, "b", mysqlType=None, data=[{"id": "2", "name": "b", "Name": "c"}])
    rig.send("t", (1, text(1)), (2, both))
    rig.settle()
    (letter,) = rig.heard(msg.DeadLetter)
    assert letter.reason == "db.t: the column names name and Name differ by case only"

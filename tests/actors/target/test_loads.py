"""Targets that are being loaded: nothing is written too early, what breaks one is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.contract import messages as msg
from actors.contract.figures import Figures
from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T = "lake.db.t"
LOAD = Load("load-1", {S0: 1})
LOADED = replace(LOAD, ends={S0: 5})


def rig_of(folder: Path, load: Load = LOAD, **settings: Any) -> ProcessorRig:
    return ProcessorRig(folder, loads={T: load}, **settings)


def ddl(sql: str) -> bytes:
    body = {"database": "db", "table": "t", "isDdl": True, "type": "ALTER", "sql": sql}
    return json.dumps({**body, "id": 1, "es": 1, "ts": 2}).encode()


def moved(key: int, old: int) -> bytes:
    """A changed key, told with what changed alone."""
    return canal("t", key, type="UPDATE", data=[{"id": str(key)}], old=[{"id": str(old)}])


def broken(rig: ProcessorRig) -> list[LoadHindered]:
    return [each.why for each in rig.heard(msg.LoadBroken)]


def test_from_the_first_message_on_all_is_kept(tmp_path: Path) -> None:
    """Nothing is opened and nothing written, and it counts as done when it is spilled."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")), (3, canal("t", 2, "b")))
    rig.settle()
    assert rig.done(T) == 3
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert not rig.states
    assert not rig.heard(msg.PipelineFailed)


def test_it_is_no_quarantine_to_look_at(tmp_path: Path) -> None:
    """It is loading; an alert about quarantines would be wrong."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    (figures,) = rig.feed(Figures())
    (target,) = figures.targets  # type: ignore[attr-defined]
    assert (target.phase, target.quarantine) == ("loading", None)


def test_nobody_can_release_it_before_its_rows_are_there(tmp_path: Path) -> None:
    """The stream's changes would come before loaded rows."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    (answer,) = rig.feed(msg.RetryTarget(T))
    assert isinstance(answer, msg.RetryAnswer)
    assert not answer.begun
    rig.settle()
    assert not rig.states


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    """Also where the spill is of an earlier run."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    rig.start()
    rig.send("t", (2, canal("t", 1, "a")), (3, canal("t", 2, "b")))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert not rig.states


def test_once_the_rows_are_there_it_is_released_by_itself(tmp_path: Path) -> None:
    """At the next start, without any message, and then it follows the stream."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")), (3, canal("t", 2, "b")))
    rig.settle()
    rig._settings["loads"] = {T: LOADED}
    rig.start()
    rig.settle()
    assert rig.rows[T] == {(1,): "a", (2,): "b"}
    assert T not in rig.listed
    rig.send("t", (7, canal("t", 3, "c")))
    rig.settle()
    assert rig.states[T].hwms == {S0: 7}


def test_a_statement_ends_the_attempt_before_it_counts_as_done(tmp_path: Path) -> None:
    """It is recorded with its place, and what follows is passed over: it will be read again."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.send("t", (4, ddl("ALTER TABLE t ADD COLUMN x INT")), ddl=True)
    rig.send("t", (5, canal("t", 2, "b")))
    rig.settle()
    (why,) = broken(rig)
    assert why.behind == {S0: 4}
    assert "ADD COLUMN x" in why.reason
    assert rig.done(T) == 5
    said = [m for _, m in rig.told if isinstance(m, msg.LoadBroken | msg.Written)]
    assert isinstance(said[0], msg.LoadBroken)
    assert not rig.states


def test_a_statement_that_changes_nothing_a_target_shows_is_no_matter(tmp_path: Path) -> None:
    """An index."""
    rig = rig_of(tmp_path)
    rig.send("t", (4, ddl("ALTER TABLE t ADD INDEX x (name)")), ddl=True)
    rig.settle()
    assert not broken(rig)
    assert rig.done(T) == 4


def test_later_statements_move_the_place_on(tmp_path: Path) -> None:
    """So that a migration of three statements costs one attempt."""
    rig = rig_of(tmp_path)
    rig.send("t", (4, ddl("ALTER TABLE t ADD COLUMN x INT")), ddl=True)
    rig.send("t", (6, ddl("ALTER TABLE t ADD COLUMN y INT")), ddl=True)
    rig.settle()
    assert [why.behind for why in broken(rig)] == [{S0: 4}, {S0: 6}]


def test_behind_the_end_a_statement_is_followed(tmp_path: Path) -> None:
    """No read has seen it."""
    rig = rig_of(tmp_path, LOADED)
    rig.send("t", (5, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (6, ddl("TRUNCATE TABLE t")), ddl=True)
    rig.settle()
    assert not broken(rig)
    assert rig.rows[T] == {}


def test_before_the_end_a_statement_is_not(tmp_path: Path) -> None:
    """Some of the rows may have been read after it."""
    rig = rig_of(tmp_path, LOADED)
    rig.send("t", (3, ddl("TRUNCATE TABLE t")), ddl=True)
    rig.settle()
    assert [why.behind for why in broken(rig)] == [{S0: 3}]
    assert rig.done(T) == 3


def test_a_changed_key_without_the_whole_row_ends_the_attempt(tmp_path: Path) -> None:
    """Its old row may be none of the table's; behind the end it is as it ever was."""
    rig = rig_of(tmp_path, LOADED)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (3, moved(2, 1)))
    rig.settle()
    (why,) = broken(rig)
    assert why.behind == {S0: 3}
    assert "without the whole row" in why.reason
    assert rig.rows[T] == {(1,): "a"}
    later = rig_of(tmp_path / "later", LOADED)
    later.send("t", (6, canal("t", 1, "a")))
    later.settle()
    later.send("t", (7, moved(2, 1)))
    later.settle()
    assert not broken(later)


def test_a_changed_key_with_its_row_in_the_batch_is_fine(tmp_path: Path) -> None:
    """It lacks nothing."""
    rig = rig_of(tmp_path, LOADED)
    rig.send("t", (2, canal("t", 1, "a")), (3, moved(2, 1)))
    rig.settle()
    assert not broken(rig)
    assert rig.rows[T] == {(2,): "a"}


def test_at_its_bound_the_load_is_given_up(tmp_path: Path) -> None:
    """It holds up nobody: what comes is passed over."""
    rig = rig_of(tmp_path, load_spill_bytes=300)
    for offset in range(2, 8):
        rig.send("t", (offset, canal("t", offset, "a")))
        rig.settle()
    (why,) = broken(rig)
    assert why.behind == {}
    assert "load.spill_bytes (300)" in why.reason
    assert rig.done(T) == 7
    assert not rig.heard(msg.PipelineFailed)


def test_a_load_that_the_sink_refuses_over_its_rows_ends_by_name(tmp_path: Path) -> None:
    """Nobody looks at a table that is not there yet, and its job would wait for ever."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    rig._settings["loads"] = {T: LOADED}
    rig.start()
    rig.refusing[T] = f"{T}: column v is stored as long"
    rig.send("t", (3, canal("t", 1, "b")))
    rig.settle()
    (why,) = broken(rig)
    assert why.behind == {}
    assert why.reason.startswith("column v is stored as long")
    assert rig.done(T) == 3
    rig.send("t", (4, canal("t", 1, "c")))
    rig.settle()
    assert rig.done(T) == 4
    assert len(broken(rig)) == 1


def test_a_revoke_amid_the_release_of_a_load_begins_it_once_more_by_itself(tmp_path: Path) -> None:
    """Nobody refused anything: a load that waited for a person's word would wait for ever."""
    rig = rig_of(tmp_path, batch_bytes=150)
    rig.send("t", *[(offset, canal("t", offset, "a")) for offset in (2, 3, 4)])
    rig.settle()
    rig._settings["loads"] = {T: LOADED}
    rig.start()
    rig.tick()
    rig.write()
    rig.tick()
    assert isinstance(rig.work[0], msg.WriteBatch)
    rig.feed(msg.Forget((S0,), 1))
    rig.settle()
    assert len(rig.rows[T]) == 3
    assert not broken(rig)
    assert T not in rig.listed


@pytest.mark.parametrize("spilled", [True, False])
def test_a_message_that_can_not_be_read_over_the_rows_ends_the_load(
    spilled: bool, tmp_path: Path
) -> None:
    """In its spill, or once that is written and the table waits for its name."""
    rig = rig_of(tmp_path, dead_letters=False, quarantine=False)
    bad = (3, canal("t", 2, "b", sqlType={"id": "?"}, data="none"))
    rig.send("t", (2, canal("t", 1, "a")), *([bad] if spilled else []))
    rig.settle()
    rig._settings["loads"] = {T: LOADED}
    rig.start()
    rig.settle()
    if not spilled:
        rig.send("t", bad)
        rig.settle()
    (why,) = broken(rig)
    assert "offset 3" in why.reason
    assert why.behind == {}
    assert not rig.heard(msg.PipelineFailed)


def test_a_broken_load_stays_broken_after_a_restart(tmp_path: Path) -> None:
    """Its messages are passed over until the next attempt."""
    rig = rig_of(tmp_path, replace(LOAD, broken=LoadHindered("a statement", {S0: 4})))
    rig.send("t", (5, canal("t", 2, "b")))
    rig.settle()
    assert rig.done(T) == 5
    assert T not in rig.listed
    assert not rig.states


def test_another_lane_is_not_past_an_end_that_nobody_knows() -> None:
    """A partition of which the load heard nothing."""
    assert LOADED.is_before_end(TopicPartition("binlog", 9), 10**6)

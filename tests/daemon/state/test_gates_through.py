"""Which tables say through when they are complete, and what of."""

from __future__ import annotations

from pathlib import Path

from daemon.state.gate_store import FOLDER, GateStore
from daemon.state.gates_through import GatesThrough
from offsets.gate_record import GateFinding, closed, new_record, reopened

MINUTE = 60_000
A, B = "lake.s.a", "lake.s.b"


def close(store: GateStore, gate: str, *tables: str) -> None:
    """The next partition of these tables."""
    record = store.record(gate) or new_record(gate, MINUTE, 0)
    store.save(closed(record, record.next_ms, 9 * MINUTE, GateFinding(tables), ()))


def test_tables_say_of_each_gate_what_it_has_closed(tmp_path: Path) -> None:
    """Nothing before it has; and less while a partition is open again."""
    store = GateStore(tmp_path)
    gates = GatesThrough(tmp_path, {A: ("day", "minute"), B: ("minute",)})
    assert gates.moments() == ({A: {}, B: {}}, None)
    close(store, "minute", A, B)
    close(store, "minute", A, B)
    first = {"minute": "1970-01-01T00:02:00Z"}
    assert gates.moments() == ({A: first, B: first}, None)
    record = store.record("minute")
    assert record is not None
    record = reopened(record, MINUTE, 9 * MINUTE, [A], ())
    store.save(record)
    assert gates.moments()[0][B] == {"minute": "1970-01-01T00:01:00Z"}
    store.save(reopened(record, 0, 9 * MINUTE, [A], ()))
    assert gates.moments()[0][B] == {}


def test_a_table_that_came_later_says_nothing_that_was_not_proved_of_it(tmp_path: Path) -> None:
    """From the next closing on, which proves all that came before it."""
    store = GateStore(tmp_path)
    gates = GatesThrough(tmp_path, {A: ("g",), B: ("g",)})
    close(store, "g", A)
    assert gates.moments() == ({A: {"g": "1970-01-01T00:01:00Z"}, B: {}}, None)
    close(store, "g", A, B)
    both = {"g": "1970-01-01T00:02:00Z"}
    assert gates.moments() == ({A: both, B: both}, None)


def test_a_damaged_gate_is_told_and_others_go_on(tmp_path: Path) -> None:
    store = GateStore(tmp_path)
    close(store, "good", B)
    (tmp_path / FOLDER / "bad.json").write_text("{")
    found, unread = GatesThrough(tmp_path, {A: ("bad", "good"), B: ("good",)}).moments()
    assert found == {B: {"good": "1970-01-01T00:01:00Z"}}
    assert unread is not None
    assert "bad.json: damaged" in unread

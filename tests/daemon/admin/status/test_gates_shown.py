"""What status, page and conditions say of gates, by the files that ``gate run`` leaves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from daemon.admin.page.document import page
from daemon.admin.page.history import History
from daemon.admin.page.targets import View
from daemon.admin.status.health import conditions
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.status_table import print_status
from daemon.config.gates import GateSection
from daemon.state.gate_store import GateStore, LookFound, WayFailure
from daemon.state.gates_shown import GateFiles
from offsets.gate_record import GateFinding, closed, new_record, reopened
from tests.daemon.admin.page.documents import NOW_MS, judged, status, target

DAY = 86_400_000
BEGIN = NOW_MS - NOW_MS % DAY - 2 * DAY
GATES = {"g": GateSection(tables=["lake.s.t"], every=86_400.0)}
AWAY = {"webhook": WayFailure("it answers 500", NOW_MS - 1_200_000)}


@pytest.fixture
def store(tmp_path: Path) -> GateStore:
    made = GateStore(tmp_path)
    record = new_record("g", DAY, BEGIN)
    made.save(closed(record, BEGIN, BEGIN + DAY, GateFinding(("lake.s.t",)), ("webhook",)))
    return made


def shown(store: GateStore, **more: Any) -> dict[str, Any]:
    gates = GateFiles(store.folder.parent).shown(GATES, NOW_MS)
    return judged(status([target("lake.s.t", 5)], **more) | {"gates": gates})


def told(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.kind, one.line) for one in conditions(found)]


def test_a_gate_that_nobody_looks_at_is_told(store: GateStore) -> None:
    """Ten minutes after the last look; of one that was never looked at, after the daemon's start.
    Where none is configured, nothing is."""
    assert told(shown(store, uptime_s=300.0)) == []
    assert told(shown(store)) == [("gate_not_looked", "nobody looks: is binlogd-gates running?")]
    store.note("g", LookFound(NOW_MS - 540_000))
    assert told(shown(store)) == []
    store.note("g", LookFound(NOW_MS - 660_000))
    assert told(shown(store)) == [
        ("gate_not_looked", "nobody looks for 11 min: is binlogd-gates running?")
    ]
    assert told(judged(status([target("lake.s.t", 5)]))) == []


def test_a_way_that_takes_nothing_is_told(store: GateStore) -> None:
    store.note("g", LookFound(NOW_MS, None, {}, AWAY))
    assert told(shown(store)) == [
        ("gate_not_told", "1 notification is not taken by webhook for 20 min: it answers 500")
    ]


def test_status_and_page_show_why_the_next_one_is_shut(store: GateStore) -> None:
    """Also what was reopened; a hostile reason stays a text."""
    record = store.record("g")
    assert record is not None
    store.save(reopened(record, BEGIN, NOW_MS, ["lake.s.t"], ()))
    store.note("g", LookFound(NOW_MS, BEGIN + DAY, {"lake.s.t": "<b>why</b>"}, AWAY))
    found = shown(store)
    (gate,) = found["gates"]
    assert gate["last"]["version"] == 1
    assert (gate["shut"], gate["reopened"]) == (
        {"lake.s.t": "<b>why</b>"}, ["2026-09-19T00:00:00Z"],
    )  # fmt: skip
    console = Console(file=io.StringIO(), width=200)
    print_status(console, found)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "g: 2026-09-20T00:00:00Z: lake.s.t: <b>why</b>" in text
    assert "g: 2026-09-19T00:00:00Z was reopened, and has not closed again" in text
    assert "g: webhook: 1 notification waits, for 20 min: it answers 500" in text
    html = page(found, History(), View())  # type: ignore[arg-type]
    assert "<h2>Gates</h2>" in html
    assert "&lt;b&gt;why&lt;/b&gt;" in html
    assert "<b>why</b>" not in html


def test_files_are_read_again_only_where_they_have_changed(
    store: GateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks each second; an outbox may be large."""
    files, read = GateFiles(store.folder.parent), list[str]()
    record = GateStore.record

    def counted(of: GateStore, gate: str) -> Any:
        read.append(gate)
        return record(of, gate)

    monkeypatch.setattr(GateStore, "record", counted)
    for _ in range(3):
        files.shown(GATES, NOW_MS)
    assert read == ["g"]
    store.note("g", LookFound(NOW_MS))
    assert files.shown(GATES, NOW_MS)[0]["looked_seconds"] == 0
    assert read == ["g", "g"]


def test_a_damaged_file_is_that_gates_error(store: GateStore) -> None:
    (store.folder / "g.json").write_text("[]")
    (gate,) = GateFiles(store.folder.parent).shown(GATES, NOW_MS)
    assert "g.json: damaged" in (gate["error"] or "")
    assert "binlogd gate forget g" in (gate["error"] or "")


def test_a_look_that_takes_long_is_no_look_that_is_missing(store: GateStore) -> None:
    """It counts a day of the log: passing, and shown. A process that died is told in time."""
    store.note("g", LookFound(NOW_MS - 30_000, looking_ms=NOW_MS - 2_400_000))
    found = shown(store)
    line = "a look is under way for 40 min"
    assert told(found) == [("gate_looks_long", f"{line}: much of the log is counted")]
    assert [one.level for one in conditions(found)] == ["passing"]
    console = Console(file=io.StringIO(), width=200)
    print_status(console, found)
    assert f"g: {line}" in console.file.getvalue()  # type: ignore[attr-defined]
    store.note("g", LookFound(NOW_MS - 660_000, looking_ms=NOW_MS - 2_400_000))
    assert told(shown(store))[0][0] == "gate_not_looked"


def metrics(found: dict[str, Any]) -> list[str]:
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: found))
    lines = generate_latest(registry).decode().splitlines()
    return [each for each in lines if each.startswith("binlogd_gate_")]


def test_gates_are_metrics(store: GateStore) -> None:
    """Alerts go by them; of one that nobody ever looked at, since the start."""
    store.note("g", LookFound(NOW_MS - 5000, BEGIN + DAY, {"lake.s.t": "why"}, AWAY))
    through = (BEGIN + DAY) // 1000
    assert [each for each in metrics(shown(store)) if "closed_through" not in each] == [
        'binlogd_gate_unseen_seconds{gate="g"} 5.0',
        'binlogd_gate_shut{gate="g"} 1.0',
        'binlogd_gate_reopened{gate="g"} 0.0',
        'binlogd_gate_undelivered{gate="g",way="webhook"} 1.0',
        'binlogd_gate_way_failing_seconds{gate="g",way="webhook"} 1200.0',
    ]
    (closed_,) = (each for each in metrics(shown(store)) if "closed_through" in each)
    assert float(closed_.split()[1]) == through
    (store.folder / "g.look").unlink()
    assert metrics(shown(store, uptime_s=300.0))[0] == 'binlogd_gate_unseen_seconds{gate="g"} 300.0'

"""What has the daemon load and compare: requests through the socket, and what is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daemon.cli.replicate.board import Board, FollowedTable
from daemon.cli.replicate.drive import Driver
from daemon.state.control import ControlError, NotRunning

TABLES = (
    FollowedTable("shop.a", "lake.shop.a", 10),
    FollowedTable("shop.b[1]", "lake.shop.b[1]", 200_000),
)


class Shown:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.last: Board | None = None

    def event(self, text: str) -> None:
        self.events.append(text)

    def draw(self, board: Board) -> None:
        self.last = board

    def close(self) -> None:
        pass


class Daemon:
    """A daemon of numbers: a load is done with the second look, a comparison at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.jobs: list[dict[str, Any]] = []
        self.runs, self.tickets = True, True
        self.position = {"file": "bin.000001", "pos": "4"}

    def ask(self, folder: Path, request: Mapping[str, Any]) -> Any:
        if not self.runs:
            raise NotRunning("no daemon runs")
        if request["ask"] == "status":
            return self.status()
        if request["ask"] == "operation":
            return self.begun(request["name"], request["params"]["targets"])
        if not self.tickets:
            raise ControlError("ticket 1: unknown")
        return {"ticket": 1, "said": [], "status": None, "result": None}

    def begun(self, name: str, targets: list[str]) -> dict[str, Any]:
        self.asked.append((name, targets))
        plain = [target.replace("[[]", "[") for target in targets]
        if name == "tables verify":
            tables = [{"target": one, "equal": True, "differing": 0} for one in plain]
            result = [{"job": "verify-1", "state": "done", "tables": tables}]
            return {"ticket": 2, "said": [], "status": 0, "result": result}
        number = len(self.jobs)
        self.jobs.append({
            "job": f"load-{number}", "kind": "load", "pipeline": "shop", "state": "running",
            "targets": plain, "message": "", "created_ms": number,
            "progress": {"done": 0, "total": 1, "per_second": None},
        })  # fmt: skip
        return {"ticket": 1, "said": [], "status": 0, "result": []}

    def status(self) -> dict[str, Any]:
        return {
            "state": "running", "jobs": self.jobs, "pipelines": [], "conditions": [],
            "collectors": [{"collector": "shop", "state": "running", "position": self.position}],
        }  # fmt: skip


def driver(daemon: Daemon, folder: Path) -> tuple[Driver, Shown]:
    shown = Shown()
    kept = folder / "equal.json"
    made = Driver(folder, "shop", TABLES, shown, kept, 0.0, daemon.ask, clock=lambda: 50.0)
    return made, shown


def test_all_tables_are_loaded_then_compared_then_followed(tmp_path: Path) -> None:
    """Names are patterns: what a pattern would read is escaped."""
    daemon = Daemon()
    drives, shown = driver(daemon, tmp_path)
    drives.look()
    drives.look()
    assert daemon.asked == [("tables load", ["lake.shop.a"])]
    daemon.jobs[0]["state"] = "done"
    drives.look()
    drives.look()
    assert daemon.asked[1:] == [
        ("tables verify", ["lake.shop.a"]), ("tables load", ["lake.shop.b[[]1]"]),
    ]  # fmt: skip
    daemon.jobs[1]["state"] = "done"
    drives.look()
    drives.look()
    assert daemon.asked[3:] == [("tables verify", ["lake.shop.b[[]1]"])]
    assert shown.events[-4:] == [
        "the first table is equal after 50 s: shop.a (1 of 2)",
        "1 table to be loaded",
        "equal after 50 s: shop.b[1] (2 of 2)",
        "all 2 tables equal after 50 s; they follow the source",
    ]
    assert shown.last is not None
    assert shown.last.equal == 2


def test_nothing_is_loaded_before_the_collector_reads(tmp_path: Path) -> None:
    """What changed between the read and the log's beginning would be in neither."""
    daemon = Daemon()
    there, daemon.position = daemon.position, {}
    drives, _ = driver(daemon, tmp_path)
    drives.look()
    daemon.position = there | {"snapshot": "INITIAL", "snapshot_completed": "false"}
    drives.look()
    assert daemon.asked == []
    daemon.position = there
    drives.look()
    assert daemon.asked == [("tables load", ["lake.shop.a"])]


def test_what_has_ended_outlives_the_process(tmp_path: Path) -> None:
    """Also where the daemon has forgotten its jobs."""
    daemon = Daemon()
    drives, _ = driver(daemon, tmp_path)
    drives.look()
    daemon.jobs[0]["state"] = "done"
    drives.look()
    drives.look()
    daemon.jobs = []
    again, shown = driver(daemon, tmp_path)
    asked = len(daemon.asked)
    again.look()
    assert daemon.asked[asked:] == [("tables load", ["lake.shop.b[[]1]"])]
    assert shown.last is not None
    assert {row.name: row.state for row in shown.last.rows} == {
        "shop.a": "equal", "shop.b[1]": "waits",
    }  # fmt: skip


def test_a_daemon_that_is_not_there_yet_is_asked_again(tmp_path: Path) -> None:
    daemon = Daemon()
    daemon.runs = False
    drives, shown = driver(daemon, tmp_path)
    drives.look()
    assert shown.last is None
    daemon.runs = True
    drives.look()
    assert daemon.asked


def test_an_answer_that_is_lost_is_asked_for_again(tmp_path: Path) -> None:
    """A daemon that was replaced knows the ticket no more."""
    daemon = Daemon()
    drives, _ = driver(daemon, tmp_path)
    waiting = {"ticket": 1, "said": [], "status": None, "result": None}
    begun, daemon.begun = daemon.begun, lambda name, targets: waiting  # type: ignore[method-assign]
    drives.look()
    daemon.tickets = False
    drives.look()
    daemon.begun = begun  # type: ignore[method-assign]
    drives.look()
    assert daemon.asked == [("tables load", ["lake.shop.a"])]


def test_all_that_was_equal_before_is_said_once_it_follows_again(tmp_path: Path) -> None:
    """Whoever waits for that line need not know of the earlier life."""
    equal = {table.target: 1.0 for table in TABLES}
    (tmp_path / "equal.json").write_text(json.dumps({"loaded": list(equal), "equal": equal}))
    daemon = Daemon()
    drives, shown = driver(daemon, tmp_path)
    drives.look()
    drives.look()
    assert daemon.asked == []
    assert [event for event in shown.events if event.startswith("all 2 tables equal")]

"""``binlogd tables verify``: its exit status says whether all is equal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from daemon.cli import verify as command
from daemon.config.config import Config
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Wanted
from daemon.operations.verify.kind import VerifyKind
from daemon.operations.verify.report import result_of, skipped, table_result
from daemon.operations.verify.work import Table
from daemon.state import control

EQUAL = table_result("lake.s.a", "s.a", Table(0, rows=(5, 5)), 1500)
UNLIKE = table_result("lake.s.b", "s.b", Table(0, found=(("1",),), rows=(5, 5)), 1500)
AWAY = skipped("lake.s.c", "s.c", "it is in quarantine")


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    """Two pipelines, none of which has a database."""
    pipeline = {"topics": ["t"], "format": "canal-json", "target": "lake.s.{table}"}
    return Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "nowhere:1"},
            "sink": {"lake": {"kind": "iceberg", "catalog": {"type": "hadoop", "warehouse": "w"}}},
            "pipeline": {
                "p": pipeline,
                "q": {**pipeline, "topics": ["u"], "target": "lake.q.{table}"},
            },
            "daemon": {"state_dir": str(tmp_path)},
        }
    )


def plan(pipeline: str, *targets: str, patterns: tuple[str, ...] = ("lake.*",)) -> Plan:
    wanted = Wanted("verify", pipeline, targets, {"tables": list(targets)})
    return Plan((wanted,), (f"{pipeline} is compared",), {"patterns": list(patterns)})


def answering(monkeypatch: pytest.MonkeyPatch, state: str, *tables: Mapping[str, Any]) -> list[Any]:
    """A daemon that has done each job at once. The requests that it got."""
    asked: list[Any] = []

    def ask(state_dir: Path, request: Mapping[str, Any], timeout_s: float = 10.0) -> Any:
        asked.append(request)
        if request["ask"] == "jobs-add":
            return {"job": "verify-1"}
        result = result_of(tables, 1.0)
        return {"job": "verify-1", "state": state, "message": "m", "progress": {"done": 5},
                "result": result}  # fmt: skip

    monkeypatch.setattr(control, "ask", ask)
    monkeypatch.setattr(command, "planned", lambda *_: [plan("p", "lake.s.a")])
    return asked


def run(settings: Config, dry_run: bool = False, as_json: bool = False) -> int:
    flags = {"dry_run": dry_run, "json": as_json}
    return command.verify(settings, Console(width=200), ["lake.*"], {"repair": False}, flags)


@pytest.mark.parametrize(
    ("state", "tables", "status"),
    [
        ("done", (EQUAL,), 0),
        ("done", (EQUAL, UNLIKE), 1),
        ("done", (EQUAL, AWAY), 1),
        ("failed", (), 2),
        ("cancelled", (), 2),
    ],
)
def test_the_exit_status(
    settings: Config, monkeypatch: pytest.MonkeyPatch, state: str, tables: Any, status: int
) -> None:
    """A table that could not be compared is not equal."""
    answering(monkeypatch, state, *tables)
    assert run(settings) == status


def test_what_is_sent_to_the_daemon(settings: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planned targets, with the tables that they are of."""
    asked = answering(monkeypatch, "done", EQUAL)
    run(settings)
    assert asked[0] == {
        "ask": "jobs-add", "kind": "verify", "pipeline": "p", "targets": ["lake.s.a"],
        "params": {"tables": ["lake.s.a"]},
    }  # fmt: skip


def test_the_result_as_json(
    settings: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document, nothing beside it."""
    answering(monkeypatch, "done", UNLIKE)
    assert run(settings, as_json=True) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["job"], found["differing"]) == ("verify-1", 1)


def test_a_dry_run_asks_nothing_of_the_daemon(
    settings: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints what would be compared."""
    asked = answering(monkeypatch, "done")
    assert run(settings, dry_run=True) == 0
    assert not asked
    assert "p is compared" in capsys.readouterr().out


def test_without_a_daemon_nothing_is_compared(
    settings: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 3."""
    monkeypatch.setattr(command, "planned", lambda *_: [plan("p", "lake.s.a")])
    assert run(settings) == 3
    assert "tables are compared by the running daemon" in capsys.readouterr().err


def test_a_pipeline_without_a_database_is_refused(
    settings: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the key that it lacks."""
    assert run(settings) == 2
    assert 'pipeline p: set database = "NAME"' in capsys.readouterr().err


def test_a_pattern_may_be_of_another_pipeline(
    settings: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is of some pipeline, or it is refused."""
    plans = {
        "p": plan("p", "lake.s.a", patterns=("a",)),
        "q": plan("q", "lake.q.b", patterns=("b",)),
    }
    monkeypatch.setattr(VerifyKind, "plan", lambda self, look, wanted: plans[wanted.pipeline])
    assert len(command.planned(settings, ["a", "b"], {})) == 2
    (refused,) = command.planned(settings, ["a", "b", "c"], {})
    assert refused.refusals == ("c: no table is called so",)

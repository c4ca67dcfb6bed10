"""The plan of a load refuses what could not end."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import Mode, TableName, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import NO_SHAPE, Shape
from daemon.config.config import Config
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import JobRequest
from daemon.operations.engine.source_targets import Chosen, Compared
from daemon.operations.load import plan
from daemon.operations.load.estimates import Flow
from daemon.operations.load.kind import LoadKind
from databases.base.port import SourceTable
from offsets.snapshot import Snapshot, SpillMark

FUNCTION = "def apply(context, rows):\n    pass\n"
STATEMENT = "def statement(context, kind, to):\n    pass\n"
ICEBERG = {"kind": "iceberg", "catalog": {"type": "hadoop", "warehouse": "/w"}}


class Looking:
    """A ``Look`` at a pipeline that has read nothing."""

    def __init__(self, config: Config, spills: Collection[str]) -> None:
        self.config = config
        self._spills = {name: SpillMark(1, {}) for name in spills}

    def snapshot(self, pipeline: str) -> Snapshot:
        return Snapshot(pipeline, "g", spills=self._spills)


def refusals(
    folder: Path, sink: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Why no load of ``s.t`` into the sink is made."""
    return planned(folder, sink, monkeypatch).refusals


def planned(
    folder: Path,
    sink: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    shape: Shape = NO_SHAPE,
    origin: str = "command",
    patterns: tuple[str, ...] = ("*",),
    spills: Collection[str] = (),
) -> Plan:
    """A load of ``s.t`` into the sink, whose database is not there."""
    config = Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "sink": {"out": sink},
            "daemon": {"state_dir": str(folder)},
            "database": {"shop": {"url": "jdbc:mysql://127.0.0.1:1/", "user": "u"}},
            "pipeline": {
                "p": {
                    "topics": ["t"], "format": "canal-json", "database": "shop",
                    "target": "out.{database}.{table}",
                }
            },
        }
    )  # fmt: skip
    target = TargetName("out", "s", "t")
    route = TargetRoute(target, Mode.UPSERT, None, shape=shape)
    one = Compared(target, TableName("s", "t"), "shop", route)
    monkeypatch.setattr(plan, "chosen", lambda *_: Chosen((one,)))
    monkeypatch.setattr(plan, "_not_now", lambda *_: iter(()))
    monkeypatch.setattr(plan, "_loaded", lambda *_: plan.Loaded("out.s.t", "s.t", 1, 1))
    source = SourceTable(one.table, (), (), 1, 1, "")
    monkeypatch.setattr(plan, "_described", lambda *_: source)
    monkeypatch.setattr(plan, "shown_columns", lambda *_: {})
    monkeypatch.setattr(plan, "flow_of", lambda *_: Flow(0.0, 0))
    monkeypatch.setattr(plan, "_why_margin", lambda *_: "")
    wanted = JobRequest("load", "p", patterns, {}, origin)
    return LoadKind().plan(Looking(config, spills), wanted)  # type: ignore[arg-type]


def python(folder: Path, text: str) -> dict[str, Any]:
    (folder / "copy_rows.py").write_text(text)
    return {"kind": "python", "entry": "copy_rows:apply", "path": [str(folder)],
            "state": str(folder / "state")}  # fmt: skip


def test_a_function_without_statements_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new table could not take the old one's name, hours later."""
    (line,) = refusals(tmp_path, python(tmp_path, FUNCTION), monkeypatch)
    assert line.startswith("out.s.t: sink out: copy_rows:apply has no function `statement`")
    assert refusals(tmp_path, python(tmp_path, FUNCTION + STATEMENT), monkeypatch) == ()


def test_a_function_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the plan, too."""
    (line,) = refusals(tmp_path, python(tmp_path, "raise ValueError('no')"), monkeypatch)
    assert "no" in line


def test_a_hadoop_catalog_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are folders, which keep their names."""
    (line,) = refusals(tmp_path, ICEBERG, monkeypatch)
    assert "a hadoop catalog can't give a table another's name" in line
    assert refusals(tmp_path, {"kind": "sqlite", "path": "x.db"}, monkeypatch) == ()


def test_a_table_that_is_gone_while_messages_of_it_are_kept_says_what_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may hold the statement by which it got another name."""
    sink = {"kind": "sqlite", "path": str(tmp_path / "copy.db")}
    asked = {"patterns": ("out.s.t", "out.s.gone")}
    (line,) = planned(tmp_path, sink, monkeypatch, **asked).refusals
    assert line == "out.s.gone: no table of pipeline p is called so"
    (line,) = planned(tmp_path, sink, monkeypatch, **asked, spills=["out.s.gone"]).refusals
    assert "may hold a renaming" in line
    assert line.endswith("then `binlogd tables retry out.s.gone`")


@pytest.mark.parametrize("origin", ["command", "first sight", "reload"])
def test_deleted_rows_that_are_kept_do_not_go_without_being_asked(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No database has them. A load that somebody asks for says so."""
    sink = {"kind": "sqlite", "path": str(tmp_path / "copy.db")}
    found = planned(tmp_path, sink, monkeypatch, Shape(delete="soft"), origin)
    line = 'out.s.t: delete = "soft": rows that the source has deleted by now are gone after a load'
    assert line in found.lines
    assert found.refusals == (() if origin == "command" else (line,))

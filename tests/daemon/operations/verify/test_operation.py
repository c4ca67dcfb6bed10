"""``binlogd tables verify``: its exit status says whether all is equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daemon.operations.engine.here import InDaemon, Lent
from daemon.operations.engine.operation import Done, parsed, perform
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Job, JobRequest, State, new_job
from daemon.operations.verify.job.kind import VerifyKind
from daemon.operations.verify.job.operation import VerifyOperation
from daemon.operations.verify.report import result_of, skipped, table_result
from daemon.operations.verify.work import Table
from tests.daemon.operations.job_rig import JobRig

EQUAL = table_result("lake.s.a", "s.a", Table(0, rows=(5, 5)), 1500)
UNLIKE = table_result("lake.s.b", "s.b", Table(0, found=(("1",),), rows=(5, 5)), 1500)
AWAY = skipped("lake.s.c", "s.c", "it is in quarantine")


class Ended(JobRig):
    """A daemon whose jobs have ended as soon as they are recorded. ``wanted``: what was asked."""

    def __init__(self, folder: Path, state: State, *tables: Mapping[str, Any]) -> None:
        super().__init__(folder)
        self.state, self.tables = state, tables
        self.wanted: list[JobRequest] = []
        self.said: list[str] = []

    def here(self) -> InDaemon:
        lent: Lent = self.lent()
        made = InDaemon(lent, lambda good, line: self.said.append(line), lambda seconds: True)
        made.add_job = self.add  # type: ignore[assignment]
        return made

    def add(self, wanted: JobRequest) -> Job:
        self.wanted.append(wanted)
        result = result_of(self.tables, 1.0) if self.state is State.DONE else {}
        job = replace(new_job(wanted, 0, "verify-1"), state=self.state, result=result, message="m")
        self.runner._shown = (job,)
        return job

    def verified(self, act: bool = True) -> Done:
        operation = VerifyOperation()
        params = parsed(operation, {"targets": ["lake.*"]})
        return perform(operation, params, self.here(), act)


def plan(pipeline: str, *targets: str, patterns: tuple[str, ...] = ("lake.*",)) -> Plan:
    wanted = JobRequest("verify", pipeline, targets, {"tables": list(targets)})
    return Plan((wanted,), (f"{pipeline} is compared",), {"patterns": list(patterns)})


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table is there."""
    one = plan("shop", "lake.s.a")
    monkeypatch.setattr(VerifyKind, "plan", lambda self, look, wanted: one)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(
    ("state", "tables", "status"),
    [
        (State.DONE, (EQUAL,), 0),
        (State.DONE, (EQUAL, UNLIKE), 1),
        (State.DONE, (EQUAL, AWAY), 1),
        (State.FAILED, (), 2),
        (State.CANCELLED, (), 2),
    ],
)
def test_the_exit_status(tmp_path: Path, state: State, tables: Any, status: int) -> None:
    """A table that could not be compared is not equal."""
    rig = Ended(tmp_path, state, *tables)
    assert rig.verified().status.value == status
    assert (f"job verify-1: {state}: m" in rig.said) == (status == 2)


@pytest.mark.usefixtures("planned")
def test_what_is_recorded(tmp_path: Path) -> None:
    """The planned targets, with the tables that they are of."""
    rig = Ended(tmp_path, State.DONE, EQUAL)
    rig.verified()
    assert rig.wanted == [JobRequest("verify", "shop", ("lake.s.a",), {"tables": ["lake.s.a"]})]


@pytest.mark.usefixtures("planned")
def test_the_result_as_json(tmp_path: Path) -> None:
    """Its tables, and how many rows differ."""
    (found,) = Ended(tmp_path, State.DONE, UNLIKE).verified().result
    assert (found["job"], found["differing"]) == ("verify-1", 1)


@pytest.mark.usefixtures("planned")
def test_a_dry_run_records_nothing(tmp_path: Path) -> None:
    """It says what would be compared."""
    rig = Ended(tmp_path, State.DONE)
    assert rig.verified(act=False).status.value == 0
    assert (rig.wanted, rig.said) == ([], ["shop is compared"])


def test_a_pipeline_without_a_database_is_refused(tmp_path: Path) -> None:
    """With the key that it lacks."""
    rig = Ended(tmp_path, State.DONE)
    assert rig.verified().status.value == 2
    assert 'pipeline shop: set database = "NAME"' in rig.said[0]


def test_a_pattern_may_be_of_another_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is of some pipeline, or it is refused."""
    rig = Ended(tmp_path, State.DONE)
    plans = {
        "p": plan("p", "lake.s.a", patterns=("a",)),
        "q": plan("q", "lake.q.b", patterns=("b",)),
    }
    monkeypatch.setattr(VerifyKind, "plan", lambda self, look, wanted: plans[wanted.pipeline])
    (section,) = rig.config.pipeline.values()
    rig.config.pipeline.clear()
    rig.config.pipeline.update(dict.fromkeys(plans, section))
    operation, here = VerifyOperation(), rig.here()
    found = operation.plan(parsed(operation, {"targets": ["a", "b"]}), here)
    assert [each.pipeline for each in found.wanted] == ["p", "q"]
    refused = operation.plan(parsed(operation, {"targets": ["a", "b", "c"]}), here)
    assert refused.refusals == ("c: no table is called so",)

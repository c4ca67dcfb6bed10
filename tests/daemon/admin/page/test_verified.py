"""The last verification of each table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daemon.admin.page.verified import LastVerified, verified_section
from daemon.operations.engine.record import Job, JobRequest, State

PLAIN = {"equal": True, "skipped": None, "differing": 0, "undecided": [], "rows": 10}


def job(name: str, ended_ms: int, *tables: dict[str, Any], state: State = State.DONE) -> Job:
    result = {"tables": [PLAIN | each for each in tables], "sample": 0.1}
    made = Job(name, JobRequest("verify", "shop", ()), state, result=result, ended_ms=ended_ms)
    return replace(made, created_ms=1)


def test_of_each_table_the_last_one_counts_and_what_differs_comes_first() -> None:
    """Of jobs that are done alone."""
    jobs = [
        job("v-2", 2_000, {"target": "l.s.b", "equal": False, "differing": 1, "undecided": [1, 2]}),
        job("v-1", 1_000, {"target": "l.s.a"}, {"target": "l.s.b"},
            {"target": "l.s.c", "equal": False, "skipped": "no key"}),
        job("v-3", 3_000, {"target": "l.s.a", "equal": False}, state=State.FAILED),
    ]  # fmt: skip
    last = LastVerified(lambda: jobs)
    assert [(one.target, one.said, one.job) for one in last()] == [
        ("l.s.b", "1 row differs, 2 rows undecided", "v-2"),
        ("l.s.c", "not compared: no key", "v-1"),
        ("l.s.a", "equal", "v-1"),
    ]
    text = verified_section(last(), 62_000) or ""
    assert "binlogd jobs show <span>v-2</span>" in text
    assert "60 s ago" in text
    assert "10%" in text


@pytest.mark.parametrize("params", [{"partition": "day=2026-11-25"}, {"between": [{}]}])
def test_what_was_not_compared_whole_with_the_source_says_nothing_of_the_table(
    params: dict[str, Any],
) -> None:
    """What a whole comparison found of it stays shown."""
    whole = job("v-1", 1_000, {"target": "l.s.a", "equal": False, "differing": 5})
    part = job("v-2", 2_000, {"target": "l.s.a"}, {"target": "l.s.b"})
    part = replace(part, wanted=replace(part.wanted, params=params))
    last = LastVerified(lambda: [whole, part])
    assert [(one.target, one.said, one.job) for one in last()] == [
        ("l.s.a", "5 rows differ", "v-1")
    ]


def test_it_follows_jobs_that_end() -> None:
    jobs: list[Job] = []
    last = LastVerified(lambda: jobs)
    assert last() == []
    assert verified_section(last(), 0) is None
    jobs.append(job("v-1", 1_000, {"target": "l.s.a"}))
    assert [one.target for one in last()] == ["l.s.a"]

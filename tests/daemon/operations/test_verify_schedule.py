"""When a verification is due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.config.pipeline_parts import VerifySection
from daemon.operations.engine.record import Job, JobRequest, State, new_job
from daemon.operations.verify_schedule import ORIGIN, due
from offsets.rebuild import Load, Rebuild
from offsets.snapshot import Snapshot, TargetMark

DAY_S = 86_400
NOW_MS = 1_700_000_000_000
HERE = Snapshot("p", "g", targets={"lake.s.t": TargetMark("1", {})})


def job(age_s: int, state: State = State.DONE, **wanted: str) -> Job:
    asked = {"kind": "verify", "pipeline": "p", "origin": ORIGIN, **wanted}
    return replace(new_job(JobRequest(**asked), NOW_MS - age_s * 1000), state=state)  # type: ignore[arg-type]


def test_the_first_is_due_once_there_is_something_to_compare() -> None:
    """Other kinds and other pipelines don't count, nor does what a person asked for of some
    tables, of a sample of their rows, or of a partition."""
    assert not due([], Snapshot("p", "g"), DAY_S, NOW_MS)
    loads = {"lake.s.u": Rebuild("lake.s.u__rebuild_1", {}, load=Load("load-1", {}))}
    assert not due([], replace(HERE, rebuilds=loads), DAY_S, NOW_MS)
    assert due([], HERE, DAY_S, NOW_MS)
    sample = JobRequest("verify", "p", tuple(HERE.targets), {"sample": 0.1})
    others = [job(1, kind="load"), job(1, pipeline="q"), job(1, origin="command")]
    assert due([*others, new_job(sample, NOW_MS)], HERE, DAY_S, NOW_MS)
    params = {"sample": 1, "partition": "day=2026-11-25"}
    partition = new_job(JobRequest("verify", "p", tuple(HERE.targets), params), NOW_MS)
    assert due([partition, replace(partition, state=State.DONE)], HERE, DAY_S, NOW_MS)
    params = {"sample": 1, "between": [{"pipeline": "p", "target": "pg.s.t"}]}
    between = new_job(JobRequest("verify", "p", tuple(HERE.targets), params), NOW_MS)
    assert due([between, replace(between, state=State.DONE)], HERE, DAY_S, NOW_MS)
    assert not due([job(1, State.RUNNING, kind="load")], HERE, DAY_S, NOW_MS)


def test_what_a_person_asked_for_of_all_rows_counts() -> None:
    """As does the verification of `binlogd replicate`: none follows it at once."""
    whole = new_job(JobRequest("verify", "p", (*HERE.targets, "lake.s.v"), {"sample": 1}), NOW_MS)
    assert not due([whole], HERE, DAY_S, NOW_MS)
    done = replace(whole, state=State.DONE)
    assert not due([done], HERE, DAY_S, NOW_MS + DAY_S * 999)
    assert due([done], HERE, DAY_S, NOW_MS + DAY_S * 1000)


def test_the_next_is_due_when_the_last_is_old_enough() -> None:
    """By the time at which it was recorded; one that failed counts as well."""
    assert not due([job(DAY_S * 3), job(DAY_S - 1)], HERE, DAY_S, NOW_MS)
    assert due([job(DAY_S * 3), job(DAY_S, State.FAILED)], HERE, DAY_S, NOW_MS)


def test_none_follows_one_that_has_not_ended() -> None:
    """However long it takes, or is paused."""
    assert not due([job(DAY_S * 3, State.PAUSED)], HERE, DAY_S, NOW_MS)


def test_a_clock_that_was_set_back_puts_nothing_off() -> None:
    """A verification recorded in a year that is still to come does not count."""
    assert due([job(-366 * DAY_S)], HERE, DAY_S, NOW_MS)
    assert not due([job(-366 * DAY_S), job(60)], HERE, DAY_S, NOW_MS)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1m", 60), ("90s", 90), ("1.5h", 5400), ("1d", DAY_S), (90, 90)]
)
def test_words_for_times(text: str | int, seconds: int) -> None:
    """A minute at least."""
    assert VerifySection(every=text).every == seconds


@pytest.mark.parametrize("text", ["", "1", "d", "1y", "-1d", "59s"])
def test_other_words_are_refused(text: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=r"is required|greater than or equal to 60"):
        VerifySection(every=text)

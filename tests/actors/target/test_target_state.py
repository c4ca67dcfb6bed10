"""A target's life: what may follow what, over random steps; what is not allowed is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import StagedBatch
from actors.target.pending import Closing
from actors.target.target_state import Life, NotAllowed, Phase
from changes.model.model import Mode, TableSchema, TargetName

ME = Address("p", "processor", 0)
BATCH = StagedBatch("b", TargetName("lake", "shop", "t"), Mode.UPSERT, TableSchema((), ()), {})
WRITE = msg.WriteBatch(BATCH, {}, {}, ME, ME)
STEPS = (
    "look", "looked", "stage", "schedule_restage", "stage_now", "narrow", "narrow_all", "staged",
    "submit", "schedule_retry", "retry_now", "ended", "quarantine", "stop",
)  # fmt: skip


def closing() -> Closing:
    return Closing((), 0, (), {}, {}, None)


def step(life: Life, name: str) -> None:
    match name:
        case "stage":
            life.stage(closing())
        case "schedule_restage" | "schedule_retry":
            getattr(life, name)(5.0)
        case "narrow":
            life.narrow(closing())
        case "narrow_all":
            life.narrow(None)
        case "submit":
            life.submit(WRITE)
        case _:
            getattr(life, name)()


def opened(*names: str) -> Life:
    life = Life()
    life.looked()
    for name in names:
        step(life, name)
    return life


@given(st.lists(st.sampled_from(STEPS), max_size=30))
@settings(max_examples=500, deadline=None)
def test_whatever_comes_it_hangs_together(names: list[str]) -> None:
    """One write, one staging; who waits waits for something; a refused step changes nothing."""
    life = Life()
    for name in names:
        before = (life.phase, life.write, life.closing, life.retry_at, life.restage_at)
        try:
            step(life, name)
        except NotAllowed:
            after = (life.phase, life.write, life.closing, life.retry_at, life.restage_at)
            assert after == before
        phase = life.phase
        assert (life.closing is not None) == (phase is Phase.STAGING)
        assert (life.write is not None) >= (phase is Phase.WRITING)
        assert life.retry_at is None or phase is Phase.OPENING or life.waiting is not None
        assert life.restage_at is None or phase is Phase.STAGING
        assert life.waiting is None or life.flying is None
        if phase is Phase.QUARANTINED:
            assert life.waiting is None
        if phase in (Phase.OPENING, Phase.READY, Phase.STOPPED):
            assert life.write is None


@pytest.mark.parametrize(
    ("before", "name"),
    [
        (("submit",), "submit"),
        (("stage",), "submit"),
        (("stage",), "stage"),
        (("submit",), "look"),
        (("stage",), "look"),
        (("submit", "quarantine"), "look"),
        (("stop",), "look"),
        (("quarantine",), "submit"),
        (("stop",), "stage"),
    ],
)
def test_what_is_not_allowed(before: tuple[str, ...], name: str) -> None:
    life = opened(*before)
    with pytest.raises(NotAllowed):
        step(life, name)


def test_a_piece_is_staged_behind_a_write_and_outlives_it() -> None:
    life = opened("submit", "stage")
    assert (life.phase, life.flying) == (Phase.STAGING, WRITE)
    life.ended()
    assert (life.phase, life.write) == (Phase.STAGING, None)
    life.staged()
    assert life.phase is Phase.READY


def test_a_write_in_flight_outlives_the_quarantine_that_begins_one_that_waits_does_not() -> None:
    assert opened("submit", "quarantine").write is WRITE
    assert opened("submit", "schedule_retry", "quarantine").write is None


def test_an_answer_that_nobody_waits_for_any_more_changes_nothing() -> None:
    life = opened("submit", "schedule_retry")
    assert not life.looked()
    assert (life.waiting, life.retry_at) == (WRITE, 5.0)


@pytest.mark.parametrize("answer", ["looked", "ended"])
def test_what_was_asked_before_a_quarantine_is_waited_for_before_a_release(answer: str) -> None:
    """Else the answer would be taken for that of what is asked next."""
    life = Life()
    life.quarantine()
    life.quarantine()
    assert not life.releasable
    with pytest.raises(NotAllowed):
        life.look()
    step(life, answer)
    assert life.releasable
    life.look()


def test_a_failure_that_comes_late_has_nothing_tried_again() -> None:
    for name in ("stop", "quarantine"):
        life = opened(name)
        life.schedule_retry(5.0)
        assert life.retry_at is None

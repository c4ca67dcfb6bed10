"""Each place where a job can stand has a way out, which is taken."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from daemon.operations.engine.effects import Limits, Now, Undo, limits_of
from daemon.operations.engine.record import (
    CANCEL,
    PAUSE,
    RESUME,
    STAGES,
    STATES,
    WITHOUT_JOB,
    Job,
    JobRequest,
    Place,
    State,
)
from daemon.operations.engine.rule import JobsLogic
from daemon.operations.load.memory import OPEN, Stage
from daemon.operations.registry import kinds_of

DOCS = Path(__file__).parents[4] / "docs" / "jobs.md"


def test_no_state_and_no_stage_is_left_out() -> None:
    """A new one says here what leads out of it."""
    assert set(STATES) == {state for state in State if not state.is_final}
    assert STAGES.keys() == kinds_of().keys()
    assert tuple(STAGES["load"]) == OPEN
    assert set(get_args(Stage)) - set(OPEN) == {"failed", "done"}


@pytest.mark.parametrize("kind", sorted(STAGES))
def test_each_place_has_a_way_out(kind: str) -> None:
    """By itself, or by a command; and a job can be given up wherever it stands."""
    places = [*STATES.values(), *STAGES[kind].values()]
    assert all(place.by_itself or place.commands for place in (*places, *WITHOUT_JOB.values()))
    assert all(CANCEL in place.commands for place in places)


@pytest.mark.parametrize("kind", sorted(STAGES))
@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("command", [CANCEL, PAUSE, RESUME])
def test_the_commands_are_those_that_the_rule_takes(kind: str, state: State, command: str) -> None:
    """And no other: it would be refused, or change nothing."""
    limits = limits_of(kinds_of())
    logic = JobsLogic(limits, [job(kind, state)], keep=9)
    request = command.split()[2]
    refusal, _ = logic.ask("job-1", request, Now(1.0, 1))  # type: ignore[arg-type]
    assert (refusal is None) == takes(STATES[state], command, limits[kind], state)
    if command == CANCEL:
        out = logic.tick(Now(2.0, 2))
        assert any(isinstance(effect, Undo) for effect in out)


def takes(place: Place, command: str, limits: Limits, state: State) -> bool:
    """A pause of what has not begun is taken, too: it rests before its first step."""
    if command == PAUSE:
        return limits.can_pause and state is not State.PAUSED
    return command in place.commands


def job(kind: str, state: State) -> Job:
    started = None if state is State.PLANNED else 1
    return Job("job-1", JobRequest(kind, "p", ("lake.s.t",)), state=state, started_ms=started)


def test_the_docs_show_the_table() -> None:
    """Word by word."""
    text = DOCS.read_text()
    for kind, stages in STAGES.items():
        for stage, place in stages.items():
            assert f"| {kind} | {stage} | {place.by_itself} | {shown(place)} |" in text, stage
    for what, place in WITHOUT_JOB.items():
        assert f"| - | {what} | {place.by_itself or 'somebody'} | {shown(place)} |" in text, what


def shown(place: Place) -> str:
    """As a cell has them."""
    return ", ".join(f"`{one}`" for one in place.commands) or "-"

"""What a removed route would leave behind is refused, unless it is given up by name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from daemon.config.file import load
from daemon.operations.engine.record import Job, JobRequest, State
from daemon.operations.reload.steps import orphans, refused
from daemon.state.dead_letters.index import LetterIndex, Stored
from offsets.position import TopicPartition
from sources.base.letter import Letter, LetterId, Mark
from tests.daemon.admin.page.documents import failing, quarantined, status, target
from tests.daemon.operations.reload.test_difference import TEXT

GONE, STAYS = "lake.shop.gone", "lake.shop.stays"
NO_LETTERS = LetterIndex((), ())


def found(
    tmp_path: Path,
    targets: list[Any],
    jobs: tuple[Job, ...] = (),
    letters: LetterIndex = NO_LETTERS,
) -> dict[str, str]:
    """By target, why it can't be left behind: the new file excludes ``shop.gone``."""
    (tmp_path / "secret").write_text("secret")
    text = TEXT.replace('include = ["shop.*"]', 'include = ["shop.*"]\nexclude = ["shop.gone"]')
    (tmp_path / "c.toml").write_text(text)
    (pipeline,) = status(targets)["pipelines"]
    fresh = load(tmp_path / "c.toml")
    return dict(orphans(fresh, pipeline | {"pipeline": "p"}, jobs, letters))


def test_a_target_of_which_all_is_written_may_go(tmp_path: Path) -> None:
    """What stays is nobody's matter, whatever its state."""
    assert found(tmp_path, [target(GONE, 500), quarantined(STAYS, "why")]) == {}


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (quarantined(GONE, "why"), "it is in quarantine, with 8,200 messages kept"),
        (failing(GONE, "no space"), f"its rows can't be written: {GONE}: no space"),
    ],
)
def test_what_is_not_written_may_not(tmp_path: Path, left: Any, why: str) -> None:
    assert found(tmp_path, [left]) == {GONE: why}


@pytest.mark.parametrize(("state", "refuses"), [(State.PAUSED, True), (State.DONE, False)])
def test_a_job_that_works_on_it_may_not(tmp_path: Path, state: State, refuses: bool) -> None:
    job = Job("load-1", JobRequest("load", "p", (GONE, STAYS)), state)
    assert (GONE in found(tmp_path, [], (job,))) == refuses
    assert STAYS not in found(tmp_path, [], (job,))


def test_what_is_given_up_by_name_is_not_refused() -> None:
    left = [(GONE, "it is kept"), (STAYS, "so is it")]
    assert refused(left, {GONE}) == [
        f"{STAYS} has no route any more, and so is it; --discard {STAYS} gives that up"
    ]


@pytest.mark.parametrize(("replayed", "refuses"), [(False, True), (True, False)])
def test_letters_that_wait_for_it(tmp_path: Path, replayed: bool, refuses: bool) -> None:
    """Replayed they would come to a table without a route."""
    now = datetime(2026, 5, 1, tzinfo=UTC)
    id_ = LetterId("p", TopicPartition("t", 0), 7, GONE)
    letter = Letter(id_, None, b"x", (), None, True, ("shop.gone",), "unfit", "why", now)
    mark = Mark(id_, "t:0:9", now) if replayed else None
    index = LetterIndex((Stored(letter, "file", mark),), ())
    assert (GONE in found(tmp_path, [], letters=index)) == refuses

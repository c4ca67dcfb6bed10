"""How pipelines and the process end."""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from daemon.app.lifecycle import (
    CLOSE_TIMEOUT_S,
    Finish,
    Hold,
    Lifecycle,
    NameRemaining,
    PipelineHeld,
    Resumed,
)
from offsets.position import TopicPartition
from settings.exit import Exit


def sent(out: list[object]) -> list[tuple[str, object]]:
    return [(str(e.to), e.message) for e in out if isinstance(e, fx.Tell)]


def finish(out: list[object]) -> Exit | None:
    return next((e.status for e in out if isinstance(e, Finish)), None)


def drained(life: Lifecycle, name: str, processors: int, now: float = 1.0) -> list[object]:
    out: list[object] = []
    for number in range(processors):
        out = life.handle(msg.Drained(Address(name, "processor", number)), now)
    return out


def test_a_signal_drains_commits_and_ends_with_zero() -> None:
    """Stop fetching, wait for every processor, save, close: status 0."""
    life = Lifecycle({"a": 2}, 60)
    assert sent(life.handle(msg.StopRequested("SIGTERM"), 0.0)) == [
        ("a/fetcher[0]", msg.StopFetching())
    ]
    assert sent(life.handle(msg.Drained(Address("a", "processor", 0)), 1.0)) == []
    assert sent(life.handle(msg.Drained(Address("a", "processor", 1)), 1.0)) == [
        ("a/committer[0]", msg.SaveNow())
    ]
    assert finish(life.handle(msg.SourceClosed("a"), 2.0)) is Exit.OK


def test_a_second_signal_ends_at_once() -> None:
    """The operator has waited long enough."""
    life = Lifecycle({"a": 1}, 60)
    life.handle(msg.StopRequested("SIGINT"), 0.0)
    assert finish(life.handle(msg.StopRequested("SIGINT"), 1.0)) is Exit.KILLED


def test_a_data_error_stops_its_own_pipeline_only() -> None:
    """The others go on, and the process with them."""
    life = Lifecycle({"a": 1, "b": 1}, 60)
    out = life.handle(msg.PipelineFailed("a", "bad record"), 0.0)
    assert sent(out) == [("a/fetcher[0]", msg.StopFetching())]
    drained(life, "a", 1)
    assert finish(life.handle(msg.SourceClosed("a"), 2.0)) is None
    assert life.failures() == {"a": "bad record"}


def test_the_process_ends_non_zero_when_no_pipeline_runs() -> None:
    """One failed, the other was stopped: the failure shows in the status."""
    life = Lifecycle({"a": 1, "b": 1}, 60)
    life.handle(msg.PipelineFailed("a", "bad record"), 0.0)
    drained(life, "a", 1)
    life.handle(msg.SourceClosed("a"), 2.0)
    life.handle(msg.StopRequested("SIGTERM"), 3.0)
    drained(life, "b", 1)
    assert finish(life.handle(msg.SourceClosed("b"), 4.0)) is Exit.PIPELINE_FAILED


def test_a_crash_ends_the_process_at_once() -> None:
    """Fail fast: a restart replays harmlessly."""
    life = Lifecycle({"a": 1}, 60)
    out = life.handle(msg.ActorCrashed(Address("a", "fetcher"), "ValueError"), 0.0)
    assert finish(out) is Exit.CRASHED


def test_a_drain_past_its_deadline_names_what_remains_and_still_commits() -> None:
    """What is done is committed, what isn't is named, the status tells."""
    life = Lifecycle({"a": 2}, 60)
    life.handle(msg.StopRequested("SIGTERM"), 0.0)
    life.handle(msg.Drained(Address("a", "processor", 0)), 1.0)
    assert life.deadline == 60.0
    out = life.tick(60.0)
    assert NameRemaining((Address("a", "processor", 1),)) in out
    assert sent(out) == [("a/committer[0]", msg.SaveNow())]
    assert finish(life.handle(msg.SourceClosed("a"), 61.0)) is Exit.DEADLINE


def test_a_close_that_hangs_ends_at_its_deadline() -> None:
    """A broker that is away must not keep the process for ever."""
    life = Lifecycle({"a": 1}, 60)
    life.handle(msg.StopRequested("SIGTERM"), 0.0)
    drained(life, "a", 1, now=1.0)
    assert finish(life.tick(1.0 + CLOSE_TIMEOUT_S)) is Exit.DEADLINE


def test_caught_up_ends_like_a_signal() -> None:
    """``--until-caught-up``: drain, save, close, status 0."""
    life = Lifecycle({"a": 1}, 60)
    life.handle(msg.CaughtUp("a"), 0.0)
    drained(life, "a", 1)
    assert finish(life.handle(msg.SourceClosed("a"), 2.0)) is Exit.OK


def failed(life: Lifecycle, name: str, reason: str, now: float = 0.0) -> None:
    """It has failed and ended."""
    life.handle(msg.PipelineFailed(name, reason), now)
    drained(life, name, 1)
    assert finish(life.handle(msg.SourceClosed(name), 2.0)) is None


def test_a_process_that_stays_ends_at_the_signal_with_the_failures_status() -> None:
    """Nothing is left to drain, so it ends at once."""
    life = Lifecycle({"a": 1}, 60, stays=True)
    failed(life, "a", "bad record")
    assert not life.stopping
    assert life.failures() == {"a": "bad record"}
    assert finish(life.handle(msg.StopRequested("SIGTERM"), 9.0)) is Exit.PIPELINE_FAILED


def test_a_signal_while_the_failed_pipeline_still_drains_waits_for_it() -> None:
    life = Lifecycle({"a": 1}, 60, stays=True)
    life.handle(msg.PipelineFailed("a", "bad record"), 0.0)
    assert finish(life.handle(msg.StopRequested("SIGTERM"), 1.0)) is None
    drained(life, "a", 1)
    assert finish(life.handle(msg.SourceClosed("a"), 2.0)) is Exit.PIPELINE_FAILED


def test_a_pipeline_that_failed_and_runs_again_is_forgiven() -> None:
    """The status is that of the present."""
    life = Lifecycle({"a": 1}, 60, stays=True)
    failed(life, "a", "bad record")
    assert PipelineHeld("a") in life.handle(Hold("a"), 3.0)
    life.handle(Resumed("a"), 4.0)
    assert life.failures() == {}
    life.handle(msg.StopRequested("SIGTERM"), 5.0)
    drained(life, "a", 1)
    assert finish(life.handle(msg.SourceClosed("a"), 6.0)) is Exit.OK


def test_a_pipeline_that_can_not_start_again_keeps_the_process_too() -> None:
    life = Lifecycle({"a": 1}, 60, stays=True)
    failed(life, "a", "bad record")
    life.handle(Hold("a"), 3.0)
    assert finish(life.handle(Resumed("a", ended=True, failure="no such topic"), 4.0)) is None
    assert life.failures() == {"a": "no such topic"}


def test_the_first_bad_record_of_a_partition_is_named() -> None:
    """The reader finds the later one sooner than a decoder the earlier one."""
    life = Lifecycle({"a": 1}, 60)
    place = TopicPartition("t", 0)
    life.handle(msg.PipelineFailed("a", "at 9", (place, 9)), 0.0)
    life.handle(msg.PipelineFailed("a", "at 5", (place, 5)), 0.1)
    life.handle(msg.PipelineFailed("a", "at 7", (place, 7)), 0.2)
    life.handle(msg.PipelineFailed("a", "another partition", (TopicPartition("t", 1), 1)), 0.3)
    life.handle(msg.PipelineFailed("a", "no place"), 0.4)
    assert life.failures() == {"a": "at 5"}

"""A session whose process ends is started again; nobody waits for one that is gone."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest
import structlog

from changes.model.errors import SinkUnavailable
from sparkwriter.session.jvm import how_ended
from sparkwriter.session.keeper import SessionKeeper, SessionKeeperSettings

WITHIN_S = 20.0
QUICK = SessionKeeperSettings(retry_base_s=0.01, retry_max_s=0.02, steady_s=60.0, stop_s=5.0)


class Child:
    """A process in the JVM's place: ``cat`` ends, as the JVM does, when its stdin is closed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self.forgotten = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self) -> str:
        return how_ended(self.process.wait())

    def kill(self) -> None:
        self.process.kill()

    def forget(self) -> None:
        self.forgotten = True

    def stop(self, within_s: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


class Starter:
    """Starts children; ``failures`` are raised first, one each time."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.failures: list[Exception] = []
        self.tried = 0
        self._changed = threading.Condition()

    def __call__(self) -> Child:
        with self._changed:
            self.tried += 1
            self._changed.notify_all()
            if self.failures and self.children:
                raise self.failures.pop(0)
            self.children.append(Child())
            return self.children[-1]

    def wait_for(self, met: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(met, WITHIN_S)


@pytest.fixture
def starter() -> Iterator[Starter]:
    made = Starter()
    yield made
    for child in made.children:
        child.process.kill()
        child.process.wait()


@pytest.fixture
def keeper(starter: Starter) -> Iterator[SessionKeeper[Child]]:
    made = SessionKeeper(starter, QUICK, jitter=lambda: 1.0)
    made.open()
    yield made
    made.close()


def second(keeper: SessionKeeper[Child]) -> Child:
    """The second generation's child, once it is handed out."""
    while keeper.figures().rebuilt == 0:
        threading.Event().wait(0.01)
    return keeper.current().jvm


def test_a_killed_process_is_replaced_without_anybody_asking(
    keeper: SessionKeeper[Child], starter: Starter
) -> None:
    """The next generation is there though no call has noticed the end of the first."""
    first = keeper.current()
    first.jvm.kill()
    assert second(keeper) is starter.children[1]
    assert first.ended.is_set()
    assert first.jvm.forgotten
    assert keeper.current().number == 2


def killed_before(keeper: SessionKeeper[Child], starter: Starter) -> threading.Event:
    """The first process is killed, and the next one comes up when the gate is opened."""
    gate = threading.Event()

    def start() -> Child:
        assert gate.wait(WITHIN_S)
        return Starter.__call__(starter)

    keeper._start = start
    first = keeper.current()
    first.jvm.kill()
    assert first.ended.wait(WITHIN_S)
    return gate


def test_while_there_is_none_callers_are_told_to_come_again(
    keeper: SessionKeeper[Child], starter: Starter
) -> None:
    """Nobody is left waiting in a queue for the session: the batch stays with its processor."""
    gate = killed_before(keeper, starter)
    with pytest.raises(SinkUnavailable, match=r"was ended by SIGKILL [0-9]+ s ago, another"):
        keeper.current()
    figures = keeper.figures()
    assert (figures.pid, figures.rebuilt, figures.last_end) == (None, 0, "was ended by SIGKILL")
    assert figures.down_s is not None
    gate.set()
    assert second(keeper).pid == keeper.figures().pid
    assert keeper.figures().down_s is None


def test_who_can_wait_gets_the_next_one(keeper: SessionKeeper[Child]) -> None:
    """As soon as it is there: no back-off has to run out first."""
    first = keeper.current()
    first.jvm.kill()
    assert first.ended.wait(WITHIN_S)
    assert keeper.current(WITHIN_S).number == 2


def test_closing_wakes_whoever_waits(keeper: SessionKeeper[Child], starter: Starter) -> None:
    """No other will come, and the process is to end."""
    gate = threading.Event()
    ended: list[str] = []

    def start() -> Child:
        assert gate.wait(WITHIN_S)
        return Starter.__call__(starter)

    def wait() -> None:
        try:
            keeper.current(300.0)
        except SinkUnavailable as error:
            ended.append(str(error))

    keeper._start = start
    first = keeper.current()
    first.jvm.kill()
    assert first.ended.wait(WITHIN_S)
    waiter = threading.Thread(target=wait)
    waiter.start()
    closer = threading.Thread(target=keeper.close)
    closer.start()
    waiter.join(WITHIN_S)
    gate.set()
    closer.join(WITHIN_S)
    assert len(ended) == 1


def test_a_start_that_fails_is_tried_again(keeper: SessionKeeper[Child], starter: Starter) -> None:
    """What was foreseen is one line, what was not comes with its traceback; both are tried on."""
    starter.failures = [SinkUnavailable("no heap"), ValueError("nobody knows")]
    with structlog.testing.capture_logs() as logs:
        keeper.current().jvm.kill()
        second(keeper)
    failed = [entry for entry in logs if entry["event"] == "session_not_rebuilt"]
    assert [entry.get("reason") for entry in failed] == ["no heap", None]
    assert failed[1]["exc_info"] is True
    assert starter.tried == 4


def test_a_dead_one_that_can_not_be_forgotten_is_replaced_all_the_same(
    keeper: SessionKeeper[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would be left who starts another."""

    def fail(child: Child) -> None:
        raise ValueError("half gone")

    monkeypatch.setattr(Child, "forget", fail)
    with structlog.testing.capture_logs() as logs:
        keeper.current().jvm.kill()
        second(keeper)
    assert [e["event"] for e in logs if e["log_level"] == "error"] == [
        "jvm_ended",
        "session_not_forgotten",
    ]


def test_one_that_dies_again_and_again_is_started_more_and_more_seldom(
    starter: Starter,
) -> None:
    """The first time at once; then the wait doubles, with jitter, up to its bound."""
    keeper = SessionKeeper(starter, SessionKeeperSettings(1.0, 5.0), jitter=lambda: 0.0)
    waits = []
    for failures in range(6):
        keeper._failures = failures
        waits.append(keeper._back_off())
    assert waits == [0.0, 0.0, 0.5, 1.0, 2.0, 2.5]


def test_closing_starts_no_other(keeper: SessionKeeper[Child], starter: Starter) -> None:
    """The end of a process that was asked to end is no death."""
    with structlog.testing.capture_logs() as logs:
        keeper.close()
    assert starter.children[0].process.wait(WITHIN_S) == 0
    assert starter.tried == 1
    assert logs == []


def test_a_process_that_comes_up_after_closing_is_ended(
    keeper: SessionKeeper[Child], starter: Starter
) -> None:
    """Closing in the middle of a rebuild leaves no process behind."""
    gate = killed_before(keeper, starter)
    keeper._closed.set()
    gate.set()
    keeper.close()
    assert all(child.process.wait(WITHIN_S) for child in starter.children)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (-signal.SIGKILL, "was ended by SIGKILL"),
        (3, "ended with status 3, as it does when it is out of memory"),
        (0, "ended with status 0"),
    ],
)
def test_how_a_process_ended(status: int, text: str) -> None:
    """Signal, status, and what a JVM says by status 3."""
    assert how_ended(status) == text

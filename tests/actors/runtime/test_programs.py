"""Programs on a leash, and their keeper: asked, replaced, tried again, ended in order."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from actors.runtime import programs
from actors.runtime.program_keeper import ProgramFigures, ProgramKeeper, ProgramTimes
from actors.runtime.programs import Program, ProgramError, free_port
from tests.test_ratchet import ROOT

_WITHIN_S = 30.0
_LIVES = "import signal; print('here', flush=True); signal.pause()"
_DIES = "print('no port', flush=True); raise SystemExit(3)"


class Toy:
    """A program whose answers the test decides; ``order`` gets its name when it is launched."""

    start_within_s = 20.0

    def __init__(self, folder: Path, name: str, order: list[str], code: str = _LIVES) -> None:
        self.program = Program(name, folder / f"{name}.log")
        self.code = code
        self.order = order
        self.answer = ""
        self.missing = ""

    def launch(self) -> None:
        self.order.append(self.program.name)
        if self.missing:
            raise ProgramError(self.missing)
        self.program.launch([sys.executable, "-c", self.code])

    def ask(self) -> None:
        if self.answer or "here" not in self.program.output():
            raise ProgramError(self.answer or "not there yet")


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def order() -> list[str]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def toys(tmp_path: Path, order: list[str]) -> Iterator[list[Toy]]:
    """Two programs, ended with the test."""
    both = [Toy(tmp_path, "log", order), Toy(tmp_path, "reader", order)]
    yield both
    for toy in both:
        toy.program.kill()


@pytest.fixture
def keeper(toys: list[Toy], clock: Clock) -> ProgramKeeper:
    """A keeper of both that looks when the test says so."""
    return ProgramKeeper(toys, clock=clock)


def _until(keeper: ProgramKeeper, name: str, state: str) -> ProgramFigures:
    """Look until a program is in a state; the processes take what time they take."""
    pause = threading.Event()
    for _ in range(600):
        keeper.look()
        figures = next(each for each in keeper.figures() if each.name == name)
        if figures.state == state:
            return figures
        pause.wait(0.05)
    raise AssertionError(keeper.figures())


def test_each_starts_when_those_before_it_answer(
    keeper: ProgramKeeper, toys: list[Toy], order: list[str]
) -> None:
    """The second isn't launched while the first does not answer."""
    toys[0].answer = "still formatting"
    keeper.look()
    keeper.look()
    assert [(f.state, f.why) for f in keeper.figures()] == [
        ("starting", "still formatting"),
        ("waiting", None),
    ]
    toys[0].answer = ""
    _until(keeper, "reader", "up")
    assert order == ["log", "reader"]


def test_one_that_was_killed_is_replaced_and_the_others_stay(
    keeper: ProgramKeeper, toys: list[Toy], order: list[str]
) -> None:
    """kill -9 of the first: it is launched again at once, the second keeps its process."""
    _until(keeper, "reader", "up")
    second = toys[1].program.pid
    os.killpg(toys[0].program.pid, signal.SIGKILL)
    toys[0].program.wait()
    down = _until(keeper, "log", "down")
    assert down.why is not None
    assert "ended with code" in down.why
    up = _until(keeper, "log", "up")
    assert (up.starts, toys[1].program.pid, order) == (2, second, ["log", "reader", "log"])


def test_one_that_cannot_start_shows_its_log_and_is_tried_with_growing_waits(
    keeper: ProgramKeeper, toys: list[Toy], clock: Clock, order: list[str]
) -> None:
    """It ends at once each time: second start at once, third after the first wait, then doubled."""
    toys[0].code = _DIES
    for tries, wait_s in [(1, 0.0), (2, 1.0), (3, 2.0), (4, 4.0)]:
        figures = _until(keeper, "log", "down")
        assert (figures.starts, "no port" in (figures.why or "")) == (tries, True)
        if wait_s:
            clock.now += wait_s - 0.1
            keeper.look()
            assert len(order) == tries, "too early"
        clock.now += 0.2
        keeper.look()


def test_what_is_missing_is_told_and_tried_again(keeper: ProgramKeeper, toys: list[Toy]) -> None:
    """No jars: nothing is launched, the reason is shown; once they are there it goes on."""
    toys[0].missing = "no jars: run setup"
    keeper.look()
    assert keeper.figures()[0].why == "no jars: run setup"
    toys[0].missing = ""
    assert _until(keeper, "log", "up").starts == 2


def test_one_that_is_silent_for_long_is_replaced(
    keeper: ProgramKeeper, toys: list[Toy], clock: Clock
) -> None:
    """The process lives and doesn't answer: shown at once, killed after a minute."""
    _until(keeper, "reader", "up")
    first = toys[0].program.pid
    toys[0].answer = "no answer in 2 s"
    clock.now += 5
    assert _until(keeper, "log", "silent").pid == first
    clock.now += 61
    keeper.look()
    assert keeper.figures()[0].state == "down"
    toys[0].answer = ""
    assert _until(keeper, "log", "up").pid != first


def test_one_that_never_answers_is_killed_after_its_time(
    keeper: ProgramKeeper, toys: list[Toy], clock: Clock
) -> None:
    """A start that hangs does not hang for ever."""
    toys[0].answer = "nobody listens"
    keeper.look()
    clock.now += toys[0].start_within_s + 1
    keeper.look()
    figures = keeper.figures()[0]
    assert (figures.state, figures.pid) == ("down", None)
    assert "no answer in 20 s: nobody listens" in str(figures.why)


def test_a_fault_of_one_takes_only_itself_down(keeper: ProgramKeeper, toys: list[Toy]) -> None:
    """An exception that nobody foresaw is that program's state; the one before it stays up."""
    toys[1].ask = lambda: [][0]  # type: ignore[method-assign]
    figures = _until(keeper, "reader", "down")
    assert "IndexError" in str(figures.why)
    assert keeper.figures()[0].state == "up"


def test_it_keeps_them_by_itself_and_ends_the_last_first(tmp_path: Path) -> None:
    """Its own thread starts them; ``close`` ends both by SIGTERM, the second before the first."""
    ends = tmp_path / "ends"
    code = (
        "import signal, sys\n"
        f"def end(*_): open({str(ends)!r}, 'a').write('%s '); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('here', flush=True)\n"
        "while True: signal.pause()"
    )
    both = [Toy(tmp_path, name, [], code % name) for name in ("log", "reader")]
    keeper = ProgramKeeper(both, ProgramTimes(look_every_s=0.05))
    keeper.open()
    assert keeper.await_up("reader", _WITHIN_S)
    keeper.close(_WITHIN_S)
    assert ends.read_text().split() == ["reader", "log"]
    assert [f.state for f in keeper.figures()] == ["ended", "ended"]
    assert not keeper.await_up("log", 0)


_PARENT = """
import os, signal, sys
from pathlib import Path
from actors.runtime.programs import Program
program = Program("toy", Path(sys.argv[1]))
code = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
program.launch([sys.executable, "-c", code])
program.await_ready(lambda: bool(program.output()), 20)
if os.fork():
    print(program.output().strip(), flush=True)
signal.pause()
"""


def test_it_ends_with_its_parent_even_where_a_forked_child_lives_on(tmp_path: Path) -> None:
    """kill -9 of the process that started it, which had forked: the fork holds no leash."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path / "log")], cwd=ROOT, stdout=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    end = os.pidfd_open(int(parent.stdout.readline()))
    try:
        os.kill(parent.pid, signal.SIGKILL)
        assert wait([end], _WITHIN_S), "it lives on"
    finally:
        os.killpg(parent.pid, signal.SIGKILL)  # the forked child
        parent.wait()
        parent.stdout.close()
        os.close(end)


def test_a_long_log_is_put_aside_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a program that is started for years is bounded by two lengths."""
    monkeypatch.setattr(programs, "LONGEST_LOG", 10)
    log = tmp_path / "toy.log"
    log.write_text("x" * 11)
    program = Program("toy", log)
    program.launch([sys.executable, "-c", "print('new')"])
    program.wait()
    assert (log.read_text(), (tmp_path / "toy.log.1").read_text()) == ("new\n", "x" * 11)


def test_a_long_log_of_a_program_that_runs_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the file open: what it says from then on stands in the same one, from its begin."""
    monkeypatch.setattr(programs, "LONGEST_LOG", 10)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    chatters = f"for line in open({str(gate)!r}): print(line, end='', flush=True)"
    toy = Program("toy", tmp_path / "toy.log")
    toy.launch([sys.executable, "-c", chatters])
    with gate.open("w") as say:
        for line in ("a long line\n", "more\n"):
            say.write(line)
            say.flush()
            while line not in (said := toy.output()):
                assert toy.runs, said
            toy.shorten_log()
    toy.stop()
    assert toy.log.read_text() == "more\n"
    assert (tmp_path / "toy.log.1").read_text() == "a long line\n"


def test_a_second_port_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance gives the same twice, which a broker then can't listen on."""
    first = free_port()
    drawn = iter([first - programs._LOWEST_PORT] * 3)
    draw = secrets.randbelow
    monkeypatch.setattr(secrets, "randbelow", lambda most: next(drawn, None) or draw(most))
    assert free_port(other_than=first) != first
    assert next(drawn, None) is None, "it was never drawn"

"""What a process and its children use, as /proc tells it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.compare import measure
from bench.compare.measure import LOOK_EVERY_S, Meter, Process, family

# Burns so many seconds in itself and in a child, holds memory in the child, and says each step.
_PROGRAM = """
import subprocess, sys, time
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
def say(what):
    print(what, flush=True); sys.stdin.readline()
if sys.argv[1] == "child":
    held = bytearray(b"x" * (100 << 20)); burn(0.3); say("holding")
else:
    say("before"); burn(0.3)
    subprocess.call([sys.executable, "-c", sys.argv[2], "child"]); say("after")
"""


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """The program, at its first word."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "parent", _PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "before\n"
        yield process
        process.kill()


def go_through(process: subprocess.Popen[str]) -> None:
    """Let it go on to where the child has ended."""
    assert [go_on(process), go_on(process)] == ["holding\n", "after\n"]


def go_on(process: subprocess.Popen[str]) -> str:
    """Let it do the next step; gives its word."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_a_child_that_ended_counts_with_its_parent(program: subprocess.Popen[str]) -> None:
    """0.3 s of each, and what their starts cost."""
    meter = Meter(program.pid)
    meter.start()
    go_through(program)
    used = meter.stop()
    assert 0.58 <= used.cpu_s < 3.0
    assert used.jvm_rss_mb == 0.0


def test_one_that_ended_counts_until_it_is_waited_for() -> None:
    """Who leaves right after its last word has used what it used: the meter looks after it."""
    text = "import time, sys; sys.stdin.readline()\nwhile time.process_time() < 0.5: pass"
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE) as process:
        meter = Meter(process.pid)
        meter.start()
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        used = meter.stop()
        (ended,) = family(process.pid)
    assert ended.cpu_s >= 0.49
    assert used.cpu_s >= 0.2
    assert (ended.rss_mb, ended.java) == (0.0, False)


def test_one_that_is_about_to_end_counts(
    program: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory, and with it what it runs, goes before its state is that of one that ended."""

    def nothing(path: Path) -> Path:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "readlink", nothing)
    (found,) = family(program.pid)
    assert (found.java, found.cpu_s > 0) == (False, True)


def test_the_peak_of_memory_is_that_of_all_at_one_moment(program: subprocess.Popen[str]) -> None:
    """The child's 100 MB are over when the meter stops."""
    meter = Meter(program.pid)
    meter.start()
    assert go_on(program) == "holding\n"
    while meter._peak_mb[False] <= 100:
        threading.Event().wait(LOOK_EVERY_S)
    assert go_on(program) == "after\n"
    assert meter.stop().rss_mb > 100


def test_what_was_used_before_the_start_does_not_count(program: subprocess.Popen[str]) -> None:
    """Warming up is free."""
    go_through(program)
    meter = Meter(program.pid)
    meter.start()
    assert meter.stop().cpu_s < 0.05


def test_a_family_has_children_and_no_one_else(program: subprocess.Popen[str]) -> None:
    """Of this process too: the program is in it."""
    (alone,) = family(program.pid)
    assert alone.pid == program.pid
    assert not alone.java


def test_what_a_jvm_just_made_is_not_a_second_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it runs its own program it shares the JVM's memory; afterwards it counts."""
    jvm = Process(10, 1, True, 5.0, 900.0, b"java\0-Xmx2g\0")
    copied = Process(11, 10, True, 0.0, 900.0, b"java\0-Xmx2g\0")
    chmod = Process(12, 10, False, 0.0, 1.0, b"chmod\0644\0")
    other = Process(13, 10, True, 1.0, 80.0, b"java\0-version\0")
    monkeypatch.setattr(measure, "processes", lambda: iter((jvm, copied, chmod, other)))
    assert family(10) == [jvm, chmod, other]

"""``binlogd top``: what is not well comes first, and it fits the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from rich.console import Console

from daemon.admin.page.history import History
from daemon.admin.page.targets import View
from daemon.admin.page.top_screen import screen
from daemon.state.control import ControlServer
from settings.version import VERSION
from tests.daemon.admin.page.documents import failing, job, quarantined, status, target

MANY = [target(f"lake.shop.t{n:04}", n) for n in range(3_000)]
ALL = View()
ILL = [failing("lake.shop.bad", "no space"), quarantined("lake.shop.shut", "a column is gone")]


def drawn(view: View = ALL, height: int = 30, width: int = 120) -> list[str]:
    """The lines of a daemon with 3,000 targets, two of them not well, and a job."""
    found = status([*MANY, *ILL], holder="lake.shop.bad", lag=500, jobs=[job()])
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(screen(found, History(), view, height))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("height", "width"), [(24, 80), (50, 200)])
def test_it_fits_the_terminal(height: int, width: int) -> None:
    """And has what is not well before all else."""
    lines = drawn(height=height, width=width)
    assert len(lines) <= height
    at = next(n for n, line in enumerate(lines) if line.startswith("target"))
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == [
        "lake.shop.bad",
        "lake.shop.shut",
    ]
    assert lines[0].startswith(
        f"binlogd {VERSION} running, ready, up 26 h, 3,002 targets; 2 things are not well"
    )


def test_it_says_what_holds_and_which_job_runs() -> None:
    text = "\n".join(drawn())
    assert "lake.shop.bad holds shop.changes:0 by 500 messages" in text
    assert "job load-3f2a9c01: running, 1,250,000 of 5,000,000 rows (25 %), 3 min left" in text


def test_it_shows_what_is_looked_for() -> None:
    assert "lake.shop.t0042" in "\n".join(drawn(View(search="0042")))
    assert "lake.shop.t" not in "\n".join(drawn(View(ill=True)))


def test_no_name_writes_into_the_terminal() -> None:
    """Neither an escape sequence nor markup of rich's."""
    found = status([failing("lake.x.\x1b[2J[bold]\u202e", "why\x07")])
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(screen(found, History(), View(), 20))
    text = console.export_text()
    assert "lake.x.\\x1b[2J[bold]\\u202e" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def run_top(folder: Path, stdout: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "daemon.cli",
        "top",
        "--state-dir",
        str(folder),
        "--every",
        "0.5",
    ]
    environment = os.environ | {"TERM": "xterm"}
    return subprocess.Popen(
        command, stdout=stdout, stdin=stdout, stderr=subprocess.PIPE, env=environment
    )


def test_in_a_terminal_it_is_drawn_again_until_the_daemon_ends(tmp_path: Path) -> None:
    """A daemon that is gone is status 3 with a line; the terminal is as it was."""
    looks, enough = [0], threading.Event()

    def answer(_: object) -> object:
        looks[0] += 1
        if looks[0] == 3:
            enough.set()
        return status(ILL, uptime_s=100.0 + looks[0])

    server = ControlServer(tmp_path, {"status": answer})
    server.start()
    ours, theirs = pty.openpty()
    process = run_top(tmp_path, theirs)
    os.close(theirs)
    seen = bytearray()

    def read() -> None:
        while wait([ours], 30):
            try:
                seen.extend(os.read(ours, 65536))
            except OSError:  # its end
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert enough.wait(60)
    finally:
        server.close()
        _, said = process.communicate(timeout=60)
        reader.join()
        os.close(ours)
    assert (process.returncode, b"no daemon runs on" in said) == (3, True)
    assert b"lake.shop.bad" in seen
    assert seen.endswith(b"\x1b[?25h\x1b[?1049l")  # the cursor, and the screen of before


def test_without_a_terminal_it_prints_once(tmp_path: Path) -> None:
    server = ControlServer(tmp_path, {"status": lambda _: status(ILL)})
    server.start()
    try:
        out, _ = run_top(tmp_path, subprocess.PIPE).communicate(timeout=60)
    finally:
        server.close()
    assert out.count(b"lake.shop.shut") == 2  # above the targets, and among them

"""One contestant's run: its events, its end, and what it may not leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from bench.compare.job import Job
from bench.compare.measure import family
from bench.compare.run import NoFigure, end_family, run_contestant
from bench.compare.workloads import workloads

JOB = Job(
    "wide", "canal-json", "upsert", "127.0.0.1:9", "wide", 7, False, workloads(0.1)["wide"].specs,
    {"type": "jdbc", "uri": "jdbc:sqlite:/x", "warehouse": "/x"}, True, "/x", "/j", "/p", 2,
)  # fmt: skip


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """A module of this text, found by the contestant's interpreter."""
    (folder / "contestant_of_a_test.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return "contestant_of_a_test"


def test_the_clock_runs_between_the_two_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it uses before its begin does not count; what begins then is told."""
    looked = tmp_path / "looked"
    os.mkfifo(looked)
    text = (
        "import time\n"
        "from bench.compare.job import *\n"
        "def burn(s):\n"
        "    end = time.process_time() + s\n"
        "    while time.process_time() < end: pass\n"
        "job = read_job(); burn(0.5); tell(Begin())\n"
        f"open({str(looked)!r}).read(); burn(0.2)\n"
        "tell(End(job.end, {'rounds': 3}))\n"
    )
    name = program(tmp_path, monkeypatch, text)
    # It goes on when the clock runs and the meter has looked: all of the 0.2 s lies between.
    found = run_contestant(name, JOB, tmp_path, 60.0, lambda: looked.write_text("go on"))
    assert (found.reached, found.figures) == (7, {"rounds": 3})
    assert 0.15 <= found.used.cpu_s < 0.6
    assert found.seconds >= 0.2


def test_the_sources_changes_end_once_its_rows_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two events, in their order."""
    text = (
        "from bench.compare.job import *\n"
        "job = read_job(); tell(Begin()); tell(Loaded()); tell(End(job.end))\n"
    )
    called: list[str] = []
    run_contestant(
        program(tmp_path, monkeypatch, text), JOB, tmp_path, 60.0,
        lambda: called.append("begun"), lambda: called.append("loaded"),
    )  # fmt: skip
    assert called == ["begun", "loaded"]


def test_sparks_python_workers_are_the_contestants_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an activated environment, and with a setting that is meant for another Spark."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    text = (
        "import os, sys\n"
        "from bench.compare.job import *\n"
        "job = read_job(); tell(Begin())\n"
        "tell(End(job.end, {'ours': int(os.environ['PYSPARK_PYTHON'] == sys.executable)}))\n"
    )
    found = run_contestant(program(tmp_path, monkeypatch, text), JOB, tmp_path, 60.0)
    assert found.figures == {"ours": 1}


def wait_for_end(pid: int) -> None:
    """Of a process that is not ours to wait for."""
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert wait([ended], 30)
    finally:
        os.close(ended)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from bench.compare.job import *\ntell(Missing('no such jar'))", "no such jar"),
        ("raise SystemExit('the query ended')", "it ended without a word: the query ended"),
        ("from bench.compare.job import *\ntell(End(7))", "it ended before it began"),
        ("from bench.compare.job import *\ntell(Begin())", "it ended without a word"),
        ("print('hello')", "it ended without a word"),
    ],
)
def test_without_both_events_there_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """But the reason, in a line."""
    with pytest.raises(NoFigure, match=reason):
        run_contestant(program(tmp_path, monkeypatch, text), JOB, tmp_path, 60.0)


def test_who_takes_too_long_has_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, with what it started."""
    text = (
        "import subprocess, sys\n"
        "from bench.compare.job import *\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "tell(Begin()); child.wait()\n"
    )
    monkeypatch.setattr("bench.compare.run.LEAVE_WITHIN_S", 1.0)
    with pytest.raises(NoFigure, match="no word in 1 s"):
        run_contestant(program(tmp_path, monkeypatch, text), JOB, tmp_path, 1.0)
    child = int((tmp_path / "stderr.log").read_text())
    wait_for_end(child)
    # Nobody may have asked yet how it ended: then it is there, and holds nothing.
    assert sum(process.rss_mb for process in family(child)) == 0.0


def test_a_family_that_ends_by_itself_is_let(tmp_path: Path) -> None:
    """Its exit code is its own."""
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    end_family(process)
    assert process.returncode == 3


def test_another_process_may_be_the_one_that_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon, and not the program that only watches its log."""
    text = (
        "import subprocess, sys, time\n"
        "from bench.compare.job import *\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "tell(Begin(child.pid))\n"
        "end = time.process_time() + 0.5\n"
        "while time.process_time() < end: pass\n"
        "tell(End(7)); child.kill(); child.wait()\n"
    )
    found = run_contestant(program(tmp_path, monkeypatch, text), JOB, tmp_path, 60.0)
    assert found.used.cpu_s < 0.1

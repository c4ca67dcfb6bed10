"""A core of what may go wrong on a lake of servers, each in a process of its own.

The whole: ``make test-lake SUITES=faults LAKES="rest-s3 rest-folder postgresql-s3"`` and
``make chaos LAKE=s3``.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from actors.runtime.java import CHECKOUT
from demo.servers.jars import server_jars
from tests.lake.__main__ import command, environment

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(600)]

REQUESTS = "landed or late or two_writers or (vectors and (lost or 409)) or (new_table and 503)"
"""Commits of unknown outcome; one way of each fault that keeps an answer back or changes it."""


def run(command: list[str], lake: str) -> None:
    """Run it to its end, which must be good."""
    server_jars("rest")
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment(lake, "local"), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_each_request_of_a_write_breaks(tmp_path) -> None:
    """A write lands once or says that it did not; no file of a table is ever missing."""
    options = ["-k", f"of_writes and ({REQUESTS})", f"--basetemp={tmp_path / 'it'}"]
    run(command(["faults"], options), "rest-s3")


def test_the_drill(tmp_path) -> None:
    """State directory and catalog lost at once, on REST and S3."""
    run(command(["faults"], ["-m", "long", f"--basetemp={tmp_path / 'it'}"]), "rest-s3")


def test_chaos_on_a_lake_of_servers(tmp_path) -> None:
    """The daemon: keys that expire, commits whose outcome is unknown."""
    faults = ["expired keys", "commits of unknown outcome"]
    out = ["--out", str(tmp_path / "chaos.json")]
    run([sys.executable, "-m", "tests.chaos", "--lake", "s3", "--away", "3", *out, *faults], "")

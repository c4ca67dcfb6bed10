"""``binlogd … <&- >&- 2>&-``, as some supervisors start a service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.test_ratchet import ROOT

SHOWS = """
import json, os, subprocess, sys
from daemon.cli import __main__ as cli

CHILD = "import os, sys; [os.write(n, b'x') for n in (1, 2)]; open(sys.argv[1], 'w').write('.')"

def app():
    print("complained", file=sys.stderr)
    kept = open("kept", "w")
    subprocess.run([sys.executable, "-c", CHILD, "child"], check=True)
    places = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
    json.dump(places, open("seen", "w"))
    print("said")

cli.app = app
cli.main()
"""


def test_closed_streams_are_no_files_of_ours(tmp_path: Path) -> None:
    """What is printed, which the status says, gets into no file: neither into the next one that is
    opened, nor from a child."""
    (tmp_path / "shows.py").write_text(SHOWS)
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} shows.py <&- >&- 2>&-"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert json.loads((tmp_path / "seen").read_text()) == ["/dev/null"] * 3
    assert (tmp_path / "kept").read_text() == ""
    assert (tmp_path / "child").read_text() == "."

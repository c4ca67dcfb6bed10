"""``make test-lake``: the suites of Iceberg's tables on each lake and master, with real servers.

Each pair is a pytest of its own: Spark's session is one for a process. A pair that lacks a server
is skipped with a line, or fails where REQUIRE names it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from actors.runtime.java import CHECKOUT
from tests.lake.lakes import LAKES
from tests.lake.sessions import MASTERS

CONTRACT = ("tests/sparkwriter/kit",)
ICEBERG = tuple(
    f"tests/sparkwriter/iceberg/test_{name}.py"
    for name in ("ddl", "compact", "upkeep", "swap", "reset", "schema", "fence")
)
"""Statements, compaction, expiry, exchanges of a rebuild, resets: what a lake may do otherwise."""

FAULTS = (
    "tests/lake/faults/of_writes.py",
    "tests/lake/faults/of_postgresql.py",
    "tests/integration/test_drill.py",
)
"""Each request of a write broken: minutes a fault, so these are run where they are named alone."""

SUITES = {"contract": CONTRACT, "iceberg": ICEBERG, "lake": ("tests/lake",), "faults": FAULTS}


def command(suites: Sequence[str], options: Sequence[str]) -> list[str]:
    """The pytest of some suites: those of SQLite and of what is long stay out."""
    files = [file for suite in suites for file in SUITES[suite]]
    chosen = ["-m", "integration and not long and not machine"]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", *chosen, *options, *files]


def environment(lake: str, master: str) -> dict[str, str]:
    """What makes the tests' session be on a lake."""
    return os.environ | {"TEST_LAKE": lake, "TEST_MASTER": master}


def main() -> int:
    """Run the pairs that are named; the status is 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.lake", description=__doc__)
    parser.add_argument("--lakes", default="", help=f"of {' '.join(LAKES)}; all without")
    parser.add_argument("--masters", default="", help=f"of {' '.join(MASTERS)}; all without")
    parser.add_argument("--suites", default="", help=f"of {' '.join(SUITES)}; all but faults")
    parser.add_argument("options", nargs="*", help="of pytest, behind --")
    asked = parser.parse_args()
    lakes = _known(asked.lakes, LAKES, parser)
    masters = _known(asked.masters, MASTERS, parser)
    suites = _known(asked.suites, SUITES, parser)
    if not asked.suites:
        suites.remove("faults")
    told = []
    for master in masters:
        for lake in lakes:
            begun = time.monotonic()
            print(f"lake: {lake} on {master}", flush=True)
            run = command(suites, asked.options)
            code = subprocess.run(run, cwd=CHECKOUT, env=environment(lake, master)).returncode
            seconds = time.monotonic() - begun
            told.append((code, f"{lake:14} {master:8} {_word(code):8} {seconds:5.0f} s"))
    print("\n".join(line for _, line in told))
    return int(any(code for code, _ in told))


def _known(text: str, known: Iterable[str], parser: argparse.ArgumentParser) -> list[str]:
    names = list(known)
    for name in text.split():
        if name not in names:
            parser.error(f"{name} is none of {' '.join(names)}")
    return text.split() or names


def _word(code: int) -> str:
    return "passed" if code == 0 else "FAILED"


if __name__ == "__main__":
    sys.exit(main())

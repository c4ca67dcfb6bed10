"""``make live``: real databases and readers beside binlogd, and statements from a seed."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from demo.broker import BrokerError
from sparkwriter.session.jars import JarsError
from tests.live.program import LiveError
from tests.live.run import LETTERS, REPORT, WAYS, Bench, Shape, Tally, bench, play

WIDEST = 400
"""Of a line of a report on the screen; a transaction may have many long values."""
REGRESSION = Path(__file__).parent / "regression.txt"
SHORT = Shape(steps=40, every=20, beside=10, kills=True)


def main() -> int:
    """Status 1 where something differs and nobody was told; 3 where a program is missing."""
    parser = argparse.ArgumentParser(prog="make live", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="no round begins after that")
    parser.add_argument("--seed", default="", help="the first seed, or `regression`")
    parser.add_argument("--steps", type=int, default=100, help="of each seed")
    parser.add_argument("--beside", type=int, default=3, help="seeds at once")
    parser.add_argument("--without", default="", help="kinds of steps to leave out")
    parser.add_argument("--ways", default=WAYS, help="databases and readers, by last digit: mpxc")
    parser.add_argument("--calm", action="store_true", help="nothing is killed")
    asked = parser.parse_args()
    if not asked.ways or not LETTERS.issuperset(asked.ways):
        parser.error(f"--ways: letters of {''.join(sorted(LETTERS))}")
    without = frozenset(asked.without.split())
    tally = Tally()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="binlogd-live-") as folder,
            bench(_open(Path(folder)), asked.ways) as made,
        ):
            if asked.seed == "regression":
                play(
                    made,
                    [int(line) for line in REGRESSION.read_text().split()],
                    SHORT,
                    without,
                    tally,
                )
            else:
                seed = int(asked.seed or int.from_bytes(os.urandom(2), "big"))
                _rounds(made, seed, asked, without, tally)
    except (LiveError, JarsError, BrokerError) as problem:
        print(f"live: {problem}", file=sys.stderr)
        return 3
    if tally.silent:
        for line in "\n".join(tally.silent).splitlines():
            print(line if len(line) <= WIDEST else f"{line[:WIDEST]} … ({REPORT} has it whole)")
        print(f"live: {len(tally.silent)} SILENT" + tally.line().removeprefix("live: OK"))
        return 1
    print(tally.line())
    return 0


def _open(folder: Path) -> Path:
    """PostgreSQL, which runs as another user than root, must get to its own folder."""
    folder.chmod(0o711)
    return folder


def _rounds(
    made: Bench, seed: int, asked: argparse.Namespace, without: frozenset[str], tally: Tally
) -> None:
    shape = Shape(asked.steps, min(25, asked.steps), asked.beside, not asked.calm)
    end = time.monotonic() + asked.seconds
    print(f"live: seeds from {seed}, {asked.seconds:.0f} s", flush=True)
    while not tally.silent and (time.monotonic() < end or not tally.tables):
        play(made, range(seed, seed + shape.beside), shape, without, tally)
        seed += shape.beside


if __name__ == "__main__":
    sys.exit(main())

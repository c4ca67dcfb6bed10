"""``make live``: real databases and readers beside binlogd, and statements from a seed."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from actors.runtime.jars import JarsError
from demo.broker import BrokerError
from tests.live.bench import bench
from tests.live.options import Options, options
from tests.live.program import LiveError
from tests.live.run import play
from tests.live.tally import REPORT, Tally

WIDEST = 400
"""Of a line of a report on the screen; a transaction may have many long values."""


def main() -> int:
    """Status 1 where something differs and nobody was told; 3 where a program is missing."""
    asked = options(sys.argv[1:])
    tally = Tally()
    try:
        with tempfile.TemporaryDirectory(prefix="binlogd-live-") as name:
            folder = Path(name)
            folder.chmod(0o711)  # PostgreSQL runs as another user than root
            _rounds(folder, asked, tally)
    except (LiveError, JarsError, BrokerError) as problem:
        print(f"live: {problem}", file=sys.stderr)
        return 3
    for line in "\n".join(tally.silent).splitlines():
        print(line if len(line) <= WIDEST else f"{line[:WIDEST]} … ({REPORT} has it whole)")
    print(tally.line())
    return 1 if tally.silent or tally.is_thin else 0


def _rounds(folder: Path, asked: Options, tally: Tally) -> None:
    with bench(folder, asked.ways, asked.sinks, asked.shape.wires) as made:
        end = time.monotonic() + asked.seconds
        print(f"live: {asked}", flush=True)
        for seeds in _batches(asked):
            is_over = not asked.seeds and time.monotonic() >= end and tally.tables
            if tally.silent or is_over:
                return
            play(made, seeds, asked.shape, tally)


def _batches(asked: Options) -> Iterator[Sequence[int]]:
    """The seeds of each round."""
    seeds = iter(asked.seeds) if asked.seeds else count(asked.first)
    while batch := list(islice(seeds, asked.shape.beside)):
        yield batch


if __name__ == "__main__":
    sys.exit(main())

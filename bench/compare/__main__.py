"""``python -m bench.compare``: the same streams through binlogd and what else would be run.

One machine, one broker, the same topics, the same tables, each result compared with what it must
be. A contestant whose tables differ has no figure. What is measured is told in
docs/performance.md; figures go to var/compare.json.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from actors.runtime.jars import JarsError
from actors.runtime.java import CHECKOUT, JavaMissing
from actors.runtime.programs import ProgramError
from bench.compare.comparison import Comparison
from bench.compare.contestants import CONTESTANTS
from bench.compare.places import PLACES
from bench.compare.report import show
from bench.compare.workloads import Workload, workloads
from demo.broker import BrokerError, DevBroker
from demo.produce import ProduceError

DEFAULT_SCALE = 0.1
"""For an hour on two cores; 1 is what docs/performance.md calls the full sizes."""
DEFAULT_MINUTES = 55.0
"""What is left of the hour is for the first runs of the last workload."""
GROUPS: dict[str, Callable[[Workload], object]] = {
    "databases": lambda workload: workload.database,
    "load": lambda workload: workload.source and not workload.churn,
    "replicate": lambda workload: workload.churn,
    "topics": lambda workload: workload.topic_a_table or workload.partitions > 1,
}
"""Workloads that are run only where they are named: into databases, first loads from one, the same
with what changes meanwhile, and topics as Debezium makes them."""


def chosen(scale: float, only: str, contestants: str, peers: str) -> list[Workload]:
    """The workloads asked for, each with who takes part. Raises ValueError for unknown names."""
    every = workloads(scale)
    wanted = set(only.split()) or {
        one.name for one in every.values() if not any(of(one) for of in GROUPS.values())
    }
    for name in wanted & GROUPS.keys():
        wanted.remove(name)
        wanted |= {one.name for one in every.values() if GROUPS[name](one)}
    named = set(contestants.split()) or {
        c.name for c in CONTESTANTS.values() if peers == "all" or not c.big
    }
    for kind, unknown in (("workload", wanted - every.keys()),
                          ("contestant", named - CONTESTANTS.keys())):  # fmt: skip
        if unknown:
            raise ValueError(f"no {kind} is named {', '.join(sorted(unknown))}")
    return [
        workload.of(tuple(name for name in workload.contestants if name in named))
        for workload in every.values()
        if workload.name in wanted
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--scale", type=float, default=DEFAULT_SCALE)
    parser.add_argument(
        "--only",
        default="",
        help="names of workloads (all streams into a lake; databases: all into databases; "
        "load: first loads from one; replicate: with changes meanwhile; topics: Avro with a "
        "registry, keys over partitions)",
    )
    parser.add_argument("--contestants", default="", help="names of contestants (all)")
    parser.add_argument("--peers", default="", help="all: those whose files are large, too")
    parser.add_argument("--lake", default="", choices=PLACES, help="s3: REST catalog over S3")
    parser.add_argument("--runs", type=int, default=3, help="at most so many of each (3)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=DEFAULT_MINUTES,
        help="a workload's second and third runs are left out where its share of them is over",
    )
    parser.add_argument("--var", type=Path, default=CHECKOUT / "var" / "compare", help="made anew")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "var" / "compare.json")
    return parser


def main() -> int:
    """Compare; 0 when nobody's tables differed and binlogd has all its figures."""
    parser = _parser()
    options = parser.parse_args()
    try:
        taken = chosen(options.scale, options.only, options.contestants, options.peers)
    except ValueError as unknown:
        parser.error(str(unknown))
    console = Console(width=None if sys.stdout.isatty() else 160)
    began = time.monotonic()
    var = options.var.absolute()
    shutil.rmtree(var, ignore_errors=True)
    var.mkdir(parents=True)
    cores = len(os.sched_getaffinity(0))
    try:
        with (
            DevBroker(var / "broker") as broker,
            Comparison(
                var,
                broker.bootstrap,
                cores,
                PLACES[options.lake](var),
                console.print,
                options.runs,
            ) as comparison,
        ):
            for number, workload in enumerate(taken, start=1):
                comparison.run(workload, began + options.minutes * 60 * number / len(taken))
                comparison.write(options.out, options.scale)
                show(console, workload, comparison.results[workload.name])
    except (ProgramError, BrokerError, ProduceError, JarsError, JavaMissing) as problem:
        print(f"compare: {problem}", file=sys.stderr)
        return 1
    return 0 if comparison.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())

"""The options of ``make live``. Pure but for a random first seed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.live.shape import Shape
from tests.live.sources import MOST_PARTITIONS
from tests.live.ways import READERS, SINKS, SOURCES, NoSuchWay, Way, named, ways
from tests.live.wires import WIRES

REGRESSION = Path(__file__).parent / "regression.txt"
SHORT = Shape(steps=40, every=20, beside=10, kills=True)
"""Of the seeds that are kept."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run was told to do. ``seeds``: those and no others; none: from ``first`` on, for so
    many seconds."""

    ways: Sequence[Way]
    sinks: Sequence[str]
    shape: Shape
    seeds: Sequence[int]
    first: int
    seconds: float

    def __str__(self) -> str:
        which = f"{len(self.seeds)} seeds" if self.seeds else f"from {self.first} on"
        into = ", ".join(self.sinks)
        how = ", ".join(self.shape.wires)
        return f"seeds: {which}; {'; '.join(map(str, self.ways))}; as {how}; into {into}"


def options(words: Sequence[str]) -> Options:
    """Read a command line. Ends the program, status 2, where it can't be so."""
    parser = _parser()
    asked = parser.parse_args(words)
    try:
        wires = named("wire", asked.wire, WIRES)
        which = ways(
            named("sources", asked.sources, SOURCES), named("readers", asked.readers, READERS)
        )
        sinks = named("sinks", asked.sinks, SINKS)
        seeds, first = seeds_of(asked.seeds)
    except NoSuchWay as problem:
        parser.error(str(problem))
    if asked.own and not {"postgres", "mariadb"}.intersection(sinks):
        parser.error("--own: with --sinks postgres or mariadb")
    if not 1 <= asked.partitions <= MOST_PARTITIONS:
        parser.error(f"--partitions: 1 to {MOST_PARTITIONS}")
    if asked.partitions > 1 and any(way.reader != "debezium" for way in which):
        parser.error("--partitions: above 1 with debezium alone")
    if wires != ("json",) and any(way.reader != "debezium" for way in which):
        parser.error("--wire: others than json with debezium alone")
    if asked.faults == "handover" and not {"collector", "adopted"}.issuperset(
        way.reader for way in which
    ):
        parser.error("--faults handover: with --collector or --readers adopted alone")
    without = frozenset(asked.without.replace(",", " ").split())
    if asked.seeds == "regression":
        shape = replace(SHORT, beside=asked.beside or SHORT.beside)
    else:
        every = asked.every or min(25, asked.steps)
        shape = Shape(asked.steps, every, asked.beside or 3, not asked.calm)
    handovers = shape.kills and asked.faults == "handover"
    shape = replace(
        shape, kills=shape.kills and not handovers, handovers=handovers, without=without,
        operator=asked.operator, own=asked.own,
        partitions=asked.partitions, wires=wires,
    )  # fmt: skip
    return Options(which, sinks, shape, seeds, first, asked.seconds)


def kept() -> Sequence[int]:
    """The seeds of the file, any, one a line; what stands behind # is what one has found."""
    lines = (line.partition("#")[0].strip() for line in REGRESSION.read_text().splitlines())
    return [int(line) for line in lines if line]


def seeds_of(text: str) -> tuple[Sequence[int], int]:
    """The seeds of an option, or the first of them. Raises NoSuchWay."""
    if text == "regression":
        return kept(), 0
    if not text:
        return (), int.from_bytes(os.urandom(2), "big")
    try:
        if text.endswith("-"):
            return (), int(text[:-1])
        found: list[int] = []
        for part in text.replace(",", " ").split():
            low, _, high = part.partition("-")
            found += range(int(low), int(high or low) + 1)
    except ValueError:
        raise NoSuchWay(f"--seeds: 3,7,10-19, 30- or regression, not {text!r}") from None
    return found, 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make live", description=__doc__)
    add = parser.add_argument
    add("--sources", default="mariadb,postgres", help=", ".join(SOURCES))
    add("--readers", default="debezium", help=", ".join(READERS))
    add("--collector", dest="readers", action="store_const", const="collector",
        help="binlogd's own reads, as --readers collector")  # fmt: skip
    add("--faults", default="each", choices=("each", "handover"), help="what is killed")
    add("--wire", default="json", help=f"how records are written: {', '.join(WIRES)}")
    add("--partitions", type=int, default=1, help="of each seed's topic or topics")
    add("--sinks", default="iceberg", help=", ".join(SINKS))
    add("--operator", action="store_true", help="commands beside the statements")
    add("--own", action="store_true", help="some targets in databases were there before")
    add("--seeds", default="", help="3,7,10-19: these; 30-: from there on; or regression")
    add("--seconds", type=float, default=600, help="no round begins after that")
    add("--steps", type=int, default=100, help="of each seed")
    add("--every", type=int, default=0, help="steps between checkpoints; 25 without")
    add("--beside", type=int, default=0, help="seeds at once; 3 without")
    add("--without", default="", help="kinds of steps to leave out")
    add("--calm", action="store_true", help="nothing is killed")
    return parser

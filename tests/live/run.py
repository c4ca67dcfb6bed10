"""The run: rounds of seeds, each round with databases, topics and a daemon of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from pyspark.sql import SparkSession

from demo.broker import DevBroker
from demo.lake import open_session
from tests.live.canal import Canal
from tests.live.checkpoint import STUCK, Verdict, settle, verdicts
from tests.live.connect import Connect
from tests.live.daemon import Daemon
from tests.live.evidence import keep
from tests.live.flow import Flow
from tests.live.jars import FOLDER
from tests.live.kills import Victim, plan
from tests.live.maxwell import Maxwell
from tests.live.program import LiveError
from tests.live.readers import Reader
from tests.live.source_mariadb import MariaDbSource
from tests.live.source_postgres import PostgresSource
from tests.live.sources import Source

REPORT = FOLDER / "report.txt"


@dataclass(frozen=True, slots=True)
class Shape:
    """How long a seed is: so many steps, a checkpoint after each so many of them."""

    steps: int
    every: int
    beside: int
    """So many seeds are under way at once."""
    kills: bool
    """Whether programs are killed amid it."""


@dataclass(slots=True)
class Tally:
    """What a run has come to."""

    statements: int = 0
    changes: int = 0
    tables: int = 0
    equal: int = 0
    told: int = 0
    silent: list[str] = field(default_factory=list)
    """One report for each difference that nobody was told of."""

    def note(self, report: str) -> None:
        """Keep a report, on disk at once."""
        self.silent.append(report)
        FOLDER.mkdir(parents=True, exist_ok=True)
        REPORT.write_text("\n".join(self.silent) + "\n")

    def line(self) -> str:
        """The last line of a run that found nothing."""
        return (
            f"live: OK, {self.statements} statements, {self.changes} changes, {self.tables} tables:"
            f" {self.equal} equal, {self.told} told, {len(self.silent)} silent"
        )


WAYS = "mpmpmpmpmp"
"""By the last digit of a seed: MariaDB (m) and PostgreSQL (p) by Debezium. ``--ways`` knows MariaDB
by Maxwell (x) and by Canal (c), too."""
LETTERS = frozenset("mpxc")


@dataclass(slots=True)
class Bench:
    """The programs that last for the whole run."""

    folder: Path
    broker: DevBroker
    ways: Sequence[tuple[Source, Reader]]
    """A seed goes the way of its last digit."""

    @property
    def sources(self) -> Sequence[Source]:
        """Each once."""
        return list(dict.fromkeys(source for source, _ in self.ways))

    @property
    def readers(self) -> Sequence[Reader]:
        """Each once."""
        return list(dict.fromkeys(reader for _, reader in self.ways))


@contextmanager
def bench(folder: Path, ways: str) -> Iterator[Bench]:
    """Start the programs of some ways; all are gone afterwards.

    Raises LiveError, JarsError, BrokerError.
    """
    with ExitStack() as stack:
        sources: dict[str, Source] = {}
        for letter in dict.fromkeys(ways):
            source = sources[letter] = _KNOWN[letter][0](folder / f"source-{letter}")
            source.start()
            stack.callback(source.program.kill)
        broker = stack.enter_context(DevBroker(folder / "broker"))
        readers: dict[type[Connect | Maxwell | Canal], Reader] = {}
        for kind in dict.fromkeys(_KNOWN[letter][1] for letter in ways):
            reader = readers[kind] = kind(folder / kind.__name__.lower(), broker.bootstrap)
            reader.start()
            stack.callback(reader.kill)
        taken = [(sources[letter], readers[_KNOWN[letter][1]]) for letter in ways]
        yield Bench(folder, broker, taken)


_KNOWN: Mapping[str, tuple[type[MariaDbSource | PostgresSource], type[Connect | Maxwell | Canal]]]
_KNOWN = {
    "m": (MariaDbSource, Connect), "p": (PostgresSource, Connect), "x": (MariaDbSource, Maxwell),
    "c": (MariaDbSource, Canal),
}  # fmt: skip
"""Each way has a server of its own: Maxwell ends itself at statements of databases that it was told
to leave out."""


def play(
    made: Bench, seeds: Sequence[int], shape: Shape, without: frozenset[str], tally: Tally
) -> None:
    """One round, to its last checkpoint."""
    folder = made.folder / f"round-{seeds[0]}"
    folder.mkdir()
    flows = [
        Flow(seed, *made.ways[seed % len(made.ways)], made.broker.bootstrap, without)
        for seed in seeds
    ]
    daemon = Daemon(folder, made.broker.bootstrap, [flow.pipeline() for flow in flows])
    before = _readers(made)
    for flow in flows:
        flow.read(folder)
    spark: SparkSession | None = None
    try:
        daemon.start()
        spark = open_session(folder)
        _await_readers(made, before, flows)
        victims = plan(seeds[0], shape.steps) if shape.kills else {}
        for number in range(1, shape.steps + 1):
            going = [flow for flow in flows if not flow.ended]
            for flow in going:
                flow.step()
            if number in victims and going:
                _kill(made, daemon, victims[number], number)
            if number % shape.every == 0 or number == shape.steps:
                _check(made, daemon, spark, going, number, tally)
    finally:
        if spark is not None:
            spark.stop()
        daemon.program.kill()
        for flow in flows:
            flow.reader.remove(flow.name)
            flow.topic.close()
            tally.statements += flow.history.statements
            tally.changes += flow.topic.changes


def _kill(made: Bench, daemon: Daemon, victim: Victim, number: int) -> None:
    """kill -9, and a start; a daemon is not waited for."""
    print(f"step {number}: {victim.value} killed", flush=True)
    match victim:
        case Victim.DAEMON:
            daemon.program.kill()
            daemon.launch()
        case Victim.READERS:
            for reader in made.readers:
                if reader.can_be_killed:
                    reader.kill()
                    reader.start()
        case Victim.DATABASES:
            for source in made.sources:
                source.program.kill()
                source.start()
        case _:
            assert_never(victim)


def _readers(made: Bench) -> frozenset[str]:
    return frozenset[str]().union(*(source.readers() for source in made.sources))


def _await_readers(made: Bench, before: frozenset[str], flows: Sequence[Flow]) -> None:
    """Return when each seed has its reader. Raises LiveError where one has ended, or none comes."""
    deadline, pause = time.monotonic() + _READ_WITHIN_S, threading.Event()
    while len(_readers(made) - before) < len(flows):
        for flow in flows:
            if failure := flow.reader.failure(flow.name):
                raise LiveError(f"the reader of seed {flow.seed} does not start: {failure}")
        if time.monotonic() > deadline:
            raise LiveError(f"not all of the {len(flows)} readers follow a log")
        pause.wait(0.2)


_READ_WITHIN_S = 120.0


def _check(
    made: Bench,
    daemon: Daemon,
    spark: SparkSession,
    flows: Sequence[Flow],
    number: int,
    tally: Tally,
) -> None:
    """A checkpoint of all flows that go on."""
    for flow in flows:
        flow.source.mark(flow.generator.schema, number)
    for flow in flows:
        begun = time.monotonic()
        flow.ended = settle(daemon, flow.reader, flow.name, flow.topic, number)
        schema, told = flow.generator.schema, daemon.told(flow.name)
        source = flow.source.read(schema)
        if flow.ended.startswith(STUCK):
            tally.note(report(flow, number, None, flow.ended))
        found = [] if flow.ended else verdicts(spark, source, schema, told, flow.keeps)
        tally.tables += len(found) or len(source)
        tally.told += sum(bool(one.lines) for one in found if not one.silent)
        tally.told += len(source) if flow.ended else 0
        tally.equal += sum(not one.lines for one in found)
        for one in found:
            if one.silent:
                tally.note(report(flow, number, one, ""))
        if flow.ended or any(one.silent for one in found):
            keep(flow, daemon, made.broker.bootstrap, flow.ended or "silent: see report.txt")
        took = time.monotonic() - begun
        print(_progress(flow, number, found, took), flush=True)


def _progress(flow: Flow, number: int, found: Sequence[Verdict], took_s: float) -> str:
    head = f"seed {flow.seed} step {number}: "
    if flow.ended:
        return head + flow.ended
    told = [f"{'.'.join(one.name)} ({one.told[:160]})" for one in found if one.lines and one.told]
    silent = [".".join(one.name) for one in found if one.silent]
    equal = sum(not one.lines for one in found)
    more = "".join(
        [f"; told {', '.join(told)}" * bool(told), f"; SILENT {', '.join(silent)}" * bool(silent)]
    )
    return f"{head}{equal} of {len(found)} equal in {took_s:.0f} s{more}"


def report(flow: Flow, number: int, verdict: Verdict | None, why: str) -> str:
    """What a reader needs to do it again by hand."""
    settings = ", ".join(f"{key}={value}" for key, value in flow.pipeline().more.items())
    lines = [f"seed {flow.seed}, at step {number} ({settings})"]
    if verdict is None:
        return "\n".join([*lines, f"  {why}"])
    lines.append(f"  {'.'.join(verdict.name)} differs, and nothing was said of it:")
    lines += [f"    {line}" for line in verdict.lines]
    lines.append("  its statements:")
    lines += [f"    {line}" for line in flow.history.about(verdict.name)]
    return "\n".join(lines)

"""The run: rounds of seeds, each round with databases, topics and a daemon of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import assert_never

from tests.collector.running import committed
from tests.live.bench import Bench
from tests.live.causes import is_explained
from tests.live.checkpoint import STOPPED, STUCK, Verdict, settle, verdicts
from tests.live.cluster import Cluster
from tests.live.collector import Collector
from tests.live.daemon import Daemon, registries
from tests.live.evidence import keep
from tests.live.flow import Flow
from tests.live.handovers import Handovers
from tests.live.kills import HANDS, Victim, handovers, plan
from tests.live.once import SHOWN, faults
from tests.live.operator import Operator, ended
from tests.live.partitions import Routing
from tests.live.program import LiveError
from tests.live.shape import Shape
from tests.live.sources import MARKER
from tests.live.tally import Tally, report

_READ_WITHIN_S = 120.0
STAND_IN = "__rebuild_"
"""In the name of a table that a load fills: there while it is under way, and no longer."""


def play(made: Bench, seeds: Sequence[int], shape: Shape, tally: Tally) -> None:
    """One round, to its last checkpoint."""
    folder = made.folder / f"round-{seeds[0]}"
    folder.mkdir()
    folder.chmod(0o711)
    flows = [
        Flow(seed, *made.of(seed), made.broker.bootstrap, shape, made.registry) for seed in seeds
    ]
    used = list(dict.fromkeys(flow.sink for flow in flows))
    sections = [line for sink in used for line in sink.sections(folder)]
    sections += registries(made.registry)
    daemon = Daemon(folder, made.broker.bootstrap, [flow.pipeline() for flow in flows], sections)
    before = made.reading()
    hands: Handovers | None = None
    for flow in flows:
        flow.read(folder)
    try:
        daemon.start()
        for sink in used:
            sink.begin(folder)
        _await_readers(made, before, flows)
        hands = Handovers(made, flows) if shape.handovers else None
        round_ = _Round(made, daemon, flows, shape, tally, hands)
        victims = _victims(made, seeds[0], shape)
        for number in range(1, shape.steps + 1):
            round_.step(number, victims.get(number))
    finally:
        if hands is not None:
            hands.close()
            tally.handovers = (tally.handovers or 0) + hands.done
        for sink in used:
            sink.end()
        daemon.program.kill()
        for flow in flows:
            flow.close()
            tally.statements += flow.history.statements
            tally.changes += flow.topic.changes


def _victims(made: Bench, seed: int, shape: Shape) -> Mapping[int, Victim]:
    if shape.handovers:
        outlast = [r for r in made.readers if isinstance(r, Cluster)]
        hands = [Victim.READERS] if outlast else HANDS
        return handovers(seed, shape.steps, shape.every, hands)
    return plan(seed, shape.steps, made.registry is not None) if shape.kills else {}


def _await_readers(made: Bench, before: frozenset[str], flows: Sequence[Flow]) -> None:
    """Return when each seed has its reader. Raises LiveError where one has ended, or none comes."""
    deadline, pause = time.monotonic() + _READ_WITHIN_S, threading.Event()
    while len(made.reading() - before) < len(flows):
        for flow in flows:
            if failure := flow.reader.failure(flow.name):
                raise LiveError(f"the reader of seed {flow.seed} does not start: {failure}")
        if time.monotonic() > deadline:
            raise LiveError(f"not all of the {len(flows)} readers follow a log")
        pause.wait(0.2)


class _Round:
    """Seeds that are under way together."""

    def __init__(
        self,
        made: Bench,
        daemon: Daemon,
        flows: Sequence[Flow],
        shape: Shape,
        tally: Tally,
        hands: Handovers | None,
    ) -> None:
        self._made, self._daemon, self._flows, self._hands = made, daemon, flows, hands
        self._shape, self._tally = shape, tally
        self._operators = {
            flow.seed: Operator(
                flow.name, flow.sink.name, daemon, tally.done, flow.seed, self._beat,
                plants=flow.routing not in (Routing.BY_KEY, Routing.OWN_TOPIC),
            )
            for flow in flows
            if shape.operator
        }  # fmt: skip

    def _beat(self) -> None:
        """In all sources: a job may wait for another pipeline's, which waits for a change."""
        for flow in self._flows:
            if not flow.ended:
                flow.beat()

    def step(self, number: int, victim: Victim | None) -> None:
        """One step of each seed, a kill perhaps, a checkpoint perhaps."""
        going = [flow for flow in self._flows if not flow.ended]
        for flow in going:
            flow.step()
            if flow.seed in self._operators:
                self._operators[flow.seed].step(flow.generator.schema)
        if victim is not None and going:
            if self._hands is not None:
                self._note(going, number, self._hands.await_moment(going))
            self._kill(victim, number)
        if number % self._shape.every == 0 or number == self._shape.steps:
            if self._hands is not None:
                self._note(going, number, self._hands.await_over(going))
            ended([self._operators[f.seed] for f in going if f.seed in self._operators])
            with nullcontext() if self._hands is None else self._hands.quiet():
                for flow in going:
                    flow.source.mark(flow.generator.schema, number)
                for flow in going:
                    self._check(flow, number)

    def _note(self, flows: Sequence[Flow], number: int, fault: str) -> None:
        if fault:
            for flow in flows:
                self._tally.note(report(flow, number, None, fault))

    def _kill(self, victim: Victim, number: int) -> None:
        """kill -9, and a start; a daemon is not waited for."""
        print(f"step {number}: {victim.value} killed", flush=True)
        match victim:
            case Victim.DAEMON:
                self._daemon.program.kill()
                self._daemon.launch()
            case Victim.READERS:
                for reader in self._made.readers:
                    if reader.can_be_killed:
                        reader.kill()
                        reader.start()
            case Victim.DATABASES:
                for source in self._made.sources:
                    source.program.kill()
                    source.start()
            case Victim.REGISTRY:
                assert self._made.registry is not None
                self._made.registry.kill()
                self._made.registry.start()
            case _:
                assert_never(victim)

    def _check(self, flow: Flow, number: int) -> None:
        """A checkpoint of one seed."""
        begun, tally = time.monotonic(), self._tally
        flow.ended = settle(self._daemon, flow.reader, flow.name, flow.topic, number)
        if flow.ended.startswith(STUCK):
            tally.note(report(flow, number, None, flow.ended))
        found = [] if flow.ended else self._verdicts(flow)
        source_tables = len(flow.generator.schema.tables) + 1 if flow.ended else 0
        tally.tables += len(found) + source_tables
        tally.told += sum(bool(one.lines) for one in found if not one.silent) + source_tables
        tally.equal += sum(not one.lines for one in found)
        for one in found:
            if one.silent:
                tally.note(report(flow, number, one, ""))
        groundless = _groundless(flow, found)
        for why in groundless:
            tally.groundless += 1
            tally.note(report(flow, number, None, why))
        doubted = [] if flow.ended else self._doubted(flow)
        for why in doubted:
            tally.note(report(flow, number, None, why))
        proved = True if flow.ended else self._prove(flow, number, found)
        wrong = any(one.silent for one in found) or groundless or doubted or not proved
        if flow.ended or wrong:
            why = flow.ended or "silent, or told without a cause: see report.txt"
            keep(flow, self._daemon, self._made.broker.bootstrap, why)
        print(_progress(flow, number, found, time.monotonic() - begun), flush=True)

    def _verdicts(self, flow: Flow) -> list[Verdict]:
        schema = flow.generator.schema
        source, there = flow.tables(), flow.sink.read(schema.databases)
        if flow.seed in self._operators and self._operators[flow.seed].is_busy:
            there = {name: table for name, table in there.items() if STAND_IN not in name[1]}
        found = verdicts(source, there, self._daemon.told(flow.name), flow.keeps, flow.own)
        # Those of further partitions would make a share of equal tables look better than it is.
        return [one for one in found if one.lines or not one.name[1].startswith(f"{MARKER}_")]

    def _doubted(self, flow: Flow) -> list[str]:
        """What the topic of a collector does not have once and in order."""
        if not isinstance(flow.reader, Collector):
            return []
        written = () if self._hands is None else self._hands.written(flow.seed)
        found = faults(committed(self._made.broker.bootstrap, flow.topic.name), written)
        return [f"the topic itself: {one}" for one in found[:SHOWN]]

    def _prove(self, flow: Flow, number: int, found: Sequence[Verdict]) -> bool:
        """What the operator saw, and a comparison and a repair; whether all was as it must be."""
        operator = self._operators.get(flow.seed)
        if operator is None:
            return True
        schema = flow.generator.schema
        untold = {one.name for one in found if not one.told}
        for name, rows in operator.differing.items():
            if name in untold:
                operator.faults.append(f"a verification told a difference of {name}: {rows}")
        source, there = flow.tables(), flow.sink.read(schema.databases)
        equal = [one.name for one in found if not one.lines]
        made = operator.prove(flow.sink, source, there, equal)
        spoiled = {one.table for one in made}
        flow.planted |= spoiled
        for one in self._verdicts(flow) if made else ():
            if one.name in spoiled and one.lines and not one.name[1].startswith(MARKER):
                operator.faults.append(f"{one.name}: repaired, and still differs: {one.lines}")
        operator.lead_out([one.name for one in found if one.told and one.lines], source)
        faults = list(operator.faults)
        operator.faults.clear()
        operator.differing.clear()
        for fault in faults:
            self._tally.note(report(flow, number, None, fault))
        return not faults


def _groundless(flow: Flow, found: Sequence[Verdict]) -> list[str]:
    """What was said of tables that differ, or of the whole pipeline, and no step explains."""
    told = [
        f"{'.'.join(one.name)} is told without a cause: {one.told}"
        for one in found
        if one.lines and one.told and not is_explained(one.told, flow.past(one.name))
    ]
    if flow.ended.startswith(STOPPED) and not is_explained(flow.ended, flow.past(None)):
        told.append(f"told without a cause: {flow.ended}")
    return told


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

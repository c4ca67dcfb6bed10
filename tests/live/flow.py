"""One seed's way from the source to the sink: its steps, its topic, its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from demo.servers.apicurio import Apicurio
from tests.live import own
from tests.live.causes import Past
from tests.live.collector import Collector
from tests.live.comparison import Found
from tests.live.daemon import Pipeline
from tests.live.generator import Generator
from tests.live.history import History
from tests.live.hostile import FIRST, row_image
from tests.live.partitions import Routing, left_out, made_by_connect, of_connector, routing
from tests.live.readers import Reader
from tests.live.relay import Relay
from tests.live.schema import Name, Table
from tests.live.shape import Shape
from tests.live.sink_databases import MariaDbSink, PostgresSink
from tests.live.sinks import Sink
from tests.live.sources import Source
from tests.live.topic import Topic
from tests.live.wires import JSON, form_of, unread
from tests.live.wires import of_connector as wire_of_connector


class Flow:
    """A seed that is under way. One thread's."""

    def __init__(
        self,
        seed: int,
        source: Source,
        reader: Reader,
        sink: Sink,
        bootstrap: str,
        shape: Shape,
        registry: Apicurio | None = None,
    ) -> None:
        """Make its databases and its topic."""
        self.seed, self.shape = seed, shape
        self.source, self.reader, self.sink, self.registry = source, reader, sink, registry
        self.form = form_of(seed, shape.wires)
        where = seed, shape.partitions, source.tells_statements, sink.name
        self.routing = routing(*where, is_json=self.form is JSON)
        self.tells_statements = source.tells_statements and self.routing is Routing.ONE
        self.name = f"s{seed}"
        self.history = History()
        self.generator = self._generator()
        apart = self.routing is Routing.OWN_TOPIC
        topic = f"live-{self.name}"
        self.topic = Topic(bootstrap, topic, shape.partitions, form=self.form, of_tables=apart)
        self._relay: Relay | None = None
        if self.form.is_relayed and registry is not None:
            self._relay = Relay(bootstrap, f"raw-{self.topic.name}", self.topic.name, registry)
        self.ended = ""
        """Why nothing of it is done any more."""
        self._beats = 0
        is_database = isinstance(sink, PostgresSink | MariaDbSink)
        self._maker: own.Maker | None = sink if shape.own and is_database else None
        self._rng = Random(f"own {seed}")
        self.own: set[Name] = set()
        """Targets that were there before binlogd."""
        self.planted: set[Name] = set()
        """Targets of which rows were made to differ."""

    def _generator(self) -> Generator:
        """Make the seed's databases, and what draws its statements."""
        without = self.shape.without | frozenset(self.reader.left_out)
        without |= frozenset(left_out(self.routing, self.source.tells_statements))
        every = {**self.source.kinds, **(self.source.hostile if self.seed >= FIRST else {})}
        kinds = {maker: n for maker, n in every.items() if maker.__name__ not in without}
        schema = self.source.prepare(self.seed, self.reader.images)
        schema = replace(schema, whole=self.routing is Routing.BY_KEY)
        unread_ = (*self.reader.unread, *unread(self.form))
        return Generator(self.seed, schema, kinds, unread_)

    def pipeline(self) -> Pipeline:
        """binlogd's side of it."""
        tables = f"{self.source.prefix}{self.seed}_*.*"
        format_ = self.reader.format if self.form is JSON else "debezium"
        more = section(self.seed, tables, format_, self.shape.operator)
        if self.sink.name != "lake":  # there is one way to write alone
            more = {key: value for key, value in more.items() if key != "write"}
        if self.routing is Routing.BY_KEY:
            more = {**more, "positions": "postgres-lsn"}
        if self.routing is Routing.OWN_TOPIC:
            more = {**more, "partitioned_by": "key", "partitioner": "murmur2"}
        if self.form is not JSON:
            more = {**more, "registry": self.form.registry}
        database = self.source.address(self.seed) if self.shape.operator else None
        where = self.name, self.topic.pattern
        if isinstance(self.reader, Collector):
            return Pipeline(
                *where, {key: value for key, value in more.items() if key != "format"},
                self.sink.name, self.source.log_address(self.seed),
                self.reader.section(self.name), self.source.publication,
            )  # fmt: skip
        return Pipeline(*where, more, self.sink.name, database)

    def read(self, folder: Path) -> None:
        """Have its reader begin."""
        more = dict(of_connector(self.routing, self.shape.partitions))
        topic = self.topic.name
        if self._relay is not None:
            topic = f"raw-{topic}"
            more |= made_by_connect(self.shape.partitions)
        if self.routing is Routing.OWN_TOPIC:
            more["topic.prefix"] = topic
        if self.registry is not None:
            urls = self.registry.confluent_url, self.registry.apicurio_url
            more |= wire_of_connector(self.form, *urls)
        if self.form.converter:  # the names of columns as the source has them
            more["column.propagate.source.type"] = ".*"
        self.reader.add(self.name, topic, self.seed, self.source, folder, more)

    def close(self) -> None:
        """Read no more, and look no more."""
        self.reader.remove(self.name)
        if self._relay is not None:
            self._relay.close()
        self.topic.close()

    def tables(self) -> dict[Name, Found]:
        """What the source has. Of a BINARY the zero bytes at its end count where the reader puts
        them back: the binary log leaves them away."""
        found = self.source.read(self.generator.schema)
        if self.reader.format != "debezium-json":
            return found
        return {name: table.with_kinds({"padded": "bytes"}) for name, table in found.items()}

    @property
    def keeps(self) -> bool:
        """Whether the sink keeps columns that the source dropped: by choice, or by ignorance."""
        follows = self.pipeline().more["ddl.drop_column"] == "follow"
        return not follows or not self.tells_statements

    def step(self) -> None:
        """One step on the source."""
        step = self.generator.next()
        before = self.generator.schema
        error = self.source.run(before, step.statements)
        self.history.add(step, error)
        if error:
            return
        self.generator.accepted(step)
        if step.kind in _RENAMES and not self.own.isdisjoint(step.about):
            self.own.update(step.about)
        if self._maker is not None:
            for table in step.after.tables:
                if not before.has(table.name) and table.name not in self.own:
                    self._make_own(self._maker, table)

    def _make_own(self, maker: own.Maker, table: Table) -> None:
        """Before the first row comes: a statement alone makes no target."""
        if own.make(self._rng, table, self.source.tells_statements, maker):
            self.own.add(table.name)

    def past(self, name: Name | None) -> Past:
        """What happened to a table, or to all."""
        entries = self.history.entries if name is None else self.history.of(name)
        accepted = [entry.step for entry in entries if not entry.error]
        return Past(
            frozenset(step.kind for step in accepted),
            tuple(text for step in accepted if step.kind != "rows" for text in step.statements),
            own=bool(self.own) if name is None else name in self.own,
            image=row_image(self.seed, self.reader.images),
            planted=bool(self.planted) if name is None else name in self.planted,
            apart=self.routing is not Routing.ONE,
        )

    def beat(self) -> None:
        """One more row in the marker's table, under a number that is no checkpoint's."""
        self._beats += 1
        self.source.beat(self.generator.schema, _FIRST_BEAT + self._beats, self.shape.partitions)


_FIRST_BEAT = 1_000_000
_RENAMES = ("rename_table", "several_renames", "swap", "online")
"""Kinds of steps by which a table has another name, and its target too."""


def section(seed: int, tables: str, format_: str, operator: bool = False) -> Mapping[str, Any]:
    """What a pipeline of some tables is set to: by its seed, so that in time each setting meets
    each kind of statement. ``operator``: targets may be loaded, so that is a policy, too."""
    rng = Random(f"section {seed}")
    keep_or_follow = ("keep", "follow")
    found = {
        "include": [tables],
        "format": rng.choice((format_, "auto")),
        "write": rng.choice(("merge", "equality")),
        "on_refused_target": rng.choice(("quarantine", "quarantine", "stop")),
        "ddl.drop_column": rng.choice(keep_or_follow),
        "ddl.drop_table": "follow",
        "ddl.not_understood": rng.choice(("report", "stop")),
    }
    if not operator:
        return found
    return found | {
        "on_refused_target": rng.choice(("quarantine", "reload", "reload")),
        "ddl.not_understood": "report",
        "load": rng.choice(("when-asked", "on-first-sight")),
    }

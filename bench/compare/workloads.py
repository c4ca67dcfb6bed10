"""The workloads: what each is, how large at which scale, and its stream of changes by a seed."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from bench.compare.job import NAMESPACE, TableSpec
from bench.compare.rows import COLUMNS, KEY, LOADED, SENT

RECENT = 0.02
"""The share of a table's keys that counts as recent."""
_BLOCK = 4096
"""Tables drawn in one call; any number gives the same stream."""


class Change(NamedTuple):
    """A row of a message: its key, its version before and after (None: it was not, is not)."""

    key: int
    before: int | None
    after: int | None


class Group(NamedTuple):
    """The changes of one message: rows of one table, each key once."""

    table: int
    op: Literal["I", "U", "D"]
    rows: list[Change]


@dataclass(frozen=True, slots=True)
class Workload:
    """A stream into tables. ``ops`` are the shares of inserts, updates and deletes.

    ``changes`` is a multiple of ``rows``, the rows of a message.
    """

    name: str
    what: str
    """In a line, for people."""
    changes: int
    tables: int = 20
    rows: int = 1
    format: Literal["canal-json", "tencent-dts", "debezium-json", "debezium-avro"] = "canal-json"
    mode: Literal["upsert", "append"] = "upsert"
    ops: tuple[float, float, float] = (0.5, 0.4, 0.1)
    zipf: bool = False
    preload: int = 0
    """Rows that the one table holds before the clock begins."""
    recent: float = 0.0
    """The share of updates that go to recent keys; the others go to any key."""
    per_second: int = 0
    """Changes produced a second while the contestant runs; 0: all are there before."""
    sink: bool = True
    """Without it consumption alone is measured."""
    seed: int = 1
    contestants: tuple[str, ...] = ()
    """Who takes part."""
    runs: int = 3
    """At most so many of each contestant."""
    topic_of: str = ""
    """The workload whose topic this one reads, where it has none of its own."""
    topic_a_table: bool = False
    """Each table has a topic of its own."""
    partitions: int = 1
    """Of a topic. Where there are several, a message's is that of its key (murmur2)."""
    database: Literal["", "postgresql", "mariadb"] = ""
    """What its tables are in; empty: a lake."""
    source: Literal["", "even", "skewed"] = ""
    """There is no stream: one table of a database is loaded. How its keys are distributed."""
    churn: int = 0
    """Rows of that table that are changed a second while it is loaded."""

    @property
    def messages(self) -> int:
        """How many messages carry it: of one partition the end offset."""
        return self.changes // self.rows

    @property
    def is_load(self) -> bool:
        """Whether it is a first load of a table, without a stream."""
        return bool(self.source)

    @property
    def topic(self) -> str:
        """The topic's name; where each table has its own, what they begin with."""
        return self.topic_of or self.name

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics: one for all tables, or that of each."""
        if not self.topic_a_table:
            return (self.topic,)
        return tuple(f"{self.topic}.{NAMESPACE}.{table.name}" for table in self.specs)

    @property
    def in_one_partition(self) -> Workload:
        """The same stream in a topic of one partition."""
        return replace(self, partitions=1, topic_of=f"{self.topic}-one")

    def of(self, contestants: tuple[str, ...]) -> Workload:
        """The same for these contestants."""
        return replace(self, contestants=contestants)

    @property
    def specs(self) -> tuple[TableSpec, ...]:
        """The tables."""
        columns = LOADED if self.is_load else COLUMNS
        columns = (*columns, SENT) if self.per_second else columns
        return tuple(TableSpec(f"t{number}", columns, KEY) for number in range(self.tables))


@dataclass(slots=True)
class _Table:
    """The keys that live, in the order of their birth where none is deleted; their versions."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    versions: dict[int, int] = field(default_factory=dict)
    """Of keys whose version is not 0, that of preloaded rows."""
    last: int = 0

    def born(self, version: int) -> Change:
        self.last += 1
        self.keys.append(self.last)
        self.versions[self.last] = version
        return Change(self.last, None, version)

    def updated(self, place: int, version: int) -> Change:
        key = self.keys[place]
        before = self.versions.get(key, 0)
        self.versions[key] = version
        return Change(key, before, version)

    def gone(self, place: int) -> Change:
        key = self.keys[place]
        self.keys[place] = self.keys[-1]
        self.keys.pop()
        return Change(key, self.versions.pop(key), None)


def stream(workload: Workload) -> Iterator[Group]:
    """Every message's changes, in order: the same for the same workload."""
    rng = random.Random(workload.seed)
    tables = [_Table() for _ in range(workload.tables)]
    if workload.preload:
        tables[0].keys.extend(range(1, workload.preload + 1))
        tables[0].last = workload.preload
    drawn = _drawn_tables(workload, rng)
    inserts, updates, _ = workload.ops
    version = 0
    for number in itertools.islice(drawn, workload.messages):
        table, chance = tables[number], rng.random()
        versions = range(version + 1, version + workload.rows + 1)
        version += workload.rows
        if chance < inserts or len(table.keys) < workload.rows:
            yield Group(number, "I", [table.born(v) for v in versions])
        elif chance < inserts + updates:
            places = _places(rng, table, workload)
            rows = [table.updated(p, v) for p, v in zip(places, versions, strict=True)]
            yield Group(number, "U", rows)
        else:
            # From the end on: taking one out moves the last into its place.
            places = sorted(_places(rng, table, workload), reverse=True)
            yield Group(number, "D", [table.gone(place) for place in places])


def _drawn_tables(workload: Workload, rng: random.Random) -> Iterator[int]:
    """The table of each message; by Zipf's law the n-th is hit 1/n as often as the first."""
    numbers = range(workload.tables)
    weights = [1 / (n + 1) if workload.zipf else 1.0 for n in numbers]
    cumulative = list(itertools.accumulate(weights))
    own = random.Random(rng.random())
    while True:
        yield from own.choices(numbers, cum_weights=cumulative, k=_BLOCK)


def _places(rng: random.Random, table: _Table, workload: Workload) -> Sequence[int]:
    """Where in a table's keys the rows of a message are, each place once."""
    count = len(table.keys)
    places: dict[int, None] = {}
    recent = workload.recent and rng.random() < workload.recent
    span = max(int(count * RECENT), workload.rows) if recent else count
    while len(places) < workload.rows:
        places[count - 1 - int(rng.random() * span)] = None
    return tuple(places)


SPARK = ("binlogd", "binlogd-equality", "expert")
OWN = (*SPARK, "binlogd-counts", "binlogd-cuts")
JDBC = ("binlogd", "debezium-jdbc", "expert-jdbc")
LOADS = ("binlogd-load", "binlogd-load-margin", "spark-jdbc", "debezium-snapshot")
NO_SINK = ("bare-consume", "binlogd-no-sink", "parallel-consumer")
ROWS = 8
"""Rows of a message where it has several."""


def workloads(scale: float) -> dict[str, Workload]:
    """All of them by name, in the order in which they are run."""

    def size(count: int) -> int:
        return max(int(count * scale) // ROWS, 10) * ROWS

    wide = Workload(
        "wide", "20 tables, one partition, one-row Canal JSON", size(2_000_000),
        contestants=(*OWN, "tutorial", "naive", "expert-c1", "flink-sql"),
    )  # fmt: skip
    multi = replace(
        wide, name="wide-multi", what=f"the same in messages of {ROWS} rows", rows=ROWS,
        contestants=SPARK,
    )  # fmt: skip
    any_key = Workload(
        "growth", "", size(200_000), tables=1, ops=(0.0, 1.0, 0.0),
        contestants=("binlogd", "binlogd-equality"), runs=1,
    )  # fmt: skip
    growth = [
        replace(
            any_key, name=f"growth-{millions}m", preload=size(millions * 1_000_000),
            what=f"updates of any key in a table of {millions} million rows",
        )
        for millions in (1, 5, 20)
    ]  # fmt: skip
    append = Workload(
        "append", "changelog mode, one table, one-row messages", size(5_000_000), tables=1,
        mode="append", contestants=("binlogd", "expert", "connect-sink"),
    )  # fmt: skip
    seconds = min(180, max(20, int(600 * scale)))
    every = [
        replace(wide, name="consume", what="one-row messages, nothing written", sink=False,
                topic_of="wide", contestants=NO_SINK),
        replace(multi, name="consume-multi", what=f"messages of {ROWS} rows, nothing written",
                sink=False, topic_of="wide-multi", contestants=NO_SINK),
        wide,
        multi,
        replace(wide, name="wide-dts", what="the same as Tencent DTS protobuf",
                format="tencent-dts", contestants=SPARK),
        Workload("hot", "one table of 5 million rows, 80 % of the updates to recent keys",
                 size(1_000_000), tables=1, ops=(0.0, 1.0, 0.0), preload=size(5_000_000),
                 recent=0.8, contestants=SPARK),
        *growth,
        Workload("many", "300 tables, hit by Zipf's law", size(500_000), tables=300, zipf=True,
                 contestants=OWN),
        append,
        replace(append, name="append-multi", rows=ROWS,
                what=f"the same in messages of {ROWS} rows"),
        Workload("fresh", f"500 changes/s over 20 tables for {seconds} s", 500 * seconds,
                 per_second=500, contestants=SPARK),
        replace(wide, name="memory", what="wide again, a tenth as long",
                changes=size(200_000), contestants=("binlogd", "binlogd-equality"), runs=1),
        *_as_companies_have_them(wide),
        *_into_databases(size(2_000_000), seconds),
        *_loads(size(5_000_000)),
    ]  # fmt: skip
    return {workload.name: workload for workload in every}


def _as_companies_have_them(wide: Workload) -> list[Workload]:
    """Debezium's: Avro with a registry in a topic a table, and tables keyed over partitions."""
    return [
        replace(wide, name="wide-avro", what="20 tables, a topic each, Debezium Avro, registry",
                format="debezium-avro", topic_a_table=True,
                contestants=("binlogd", "expert", "flink-sql")),
        replace(wide, name="wide-keyed", what="20 tables, Debezium JSON keyed over 6 partitions",
                format="debezium-json", partitions=6,
                contestants=("binlogd", "binlogd-one-partition")),
    ]  # fmt: skip


def _into_databases(changes: int, seconds: int) -> list[Workload]:
    """One topic for both databases. Who has what freshness PostgreSQL alone can tell."""
    first = Workload(
        "databases-postgresql", "8 tables of PostgreSQL, Debezium JSON with schemas", changes,
        tables=8, format="debezium-json", database="postgresql", contestants=JDBC,
    )  # fmt: skip
    return [
        first,
        replace(first, name="databases-mariadb", what="the same into MariaDB",
                database="mariadb", topic_of=first.name),
        replace(first, name="databases-fresh", changes=500 * seconds, per_second=500,
                what=f"500 changes/s over 8 tables of PostgreSQL for {seconds} s"),
    ]  # fmt: skip


def _loads(rows: int) -> list[Workload]:
    even = Workload(
        "load-even", "first load of a table of MariaDB", rows, tables=1, source="even",
        contestants=LOADS,
    )  # fmt: skip
    dense = "the same with a key of dense ranges"
    skewed = replace(even, name="load-skewed", source="skewed", what=dense)
    replicate = replace(
        even, name="replicate", churn=500, contestants=("binlogd-replicate", "debezium-streaming"),
        what="from a command to equal tables: the same under 500 changes/s",
    )  # fmt: skip
    return [even, skewed, replicate]

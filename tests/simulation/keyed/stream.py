"""A random stream of Debezium's records over many partitions, each key in one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from changes.formats.engine.format import Headers, pack
from offsets.position import TopicPartition
from tests.simulation.shape import Shape
from tests.simulation.source import CHANGELOG, Message, target_of
from tests.simulation.stream import Stream, lay_out

TOPIC = "shop"
KEYS = 25

Row = dict[str, str | None]


def partition_of(key: bytes, partitions: int) -> int:
    """As Kafka's Java client chooses it (``Utils.murmur2``), byte by byte."""
    mask, m, n = 0xFFFFFFFF, 0x5BD1E995, len(key)
    h = 0x9747B28C ^ n
    for at in range(0, n - n % 4, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if n % 4:
        h = (h ^ int.from_bytes(key[n - n % 4 :], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


class KeyedSource:
    """A database of some tables. What they hold in the end is what the sink must hold."""

    def __init__(
        self, rng: random.Random, partitions: int, tables: int, database: str = "s"
    ) -> None:
        self._rng = rng
        self._database = database
        self._partitions = partitions
        self._numbers = 0
        self.crosses = False
        """Keys are checked at a statement's end: a row may come to a key that another has still."""
        self.tombstones = False
        """A record without a value comes behind each delete."""
        self.respelled = False
        """Columns come in capitals: those of each partition from their own place on."""
        self.bad = 0.0
        """The share of records that can't be applied."""
        self.lost = False
        """The next record is in any partition, whatever its key."""
        self.columns = {f"t{number}": ["v"] for number in range(tables)}
        self.rows: dict[str, dict[int, Row]] = {name: {} for name in self.columns}
        self.made: list[Message] = []
        self.after_each: list[Callable[[], object]] = []
        """What is called after each record."""

    def step(self) -> None:
        """One statement."""
        table = self._rng.choice(sorted(self.rows))
        if self.bad and self._rng.random() < self.bad:
            self._add_bad(table)
            return
        kinds = self._insert, self._insert, self._update, self._update, self._delete, self._move
        crossing = (self._shift, self._swap) if self.crosses else ()
        self._rng.choice((*kinds, self._chain, self._exchange, *crossing))(table)

    def grow(self, partitions: int) -> None:
        """Partitions are added: from now on keys have other ones."""
        self._partitions = partitions

    def add_column(self, default: str | None = None) -> None:
        """Without a message: the rows show it, those of each partition from their own place on."""
        table = self._rng.choice(sorted(self.rows))
        name = f"c{len(self.columns[table])}"
        self.columns[table].append(name)
        for key, row in self.rows[table].items():
            self.rows[table][key] = {**row, name: default}

    def _add_bad(self, table: str) -> None:
        """A record whose row can't be read, where its key belongs."""
        key, source = self._rng.randrange(KEYS), {"connector": "mysql", "db": "s", "table": table}
        value = {"before": [1], "after": [1], "source": source, "op": self._rng.choice("cud")}
        record = pack(_key(key), msgspec.json.encode(value))
        bad, partition = (target_of(table), CHANGELOG), partition_of(_key(key), self._partitions)
        self.made.append(Message(partition, record, bad=bad))

    def _insert(self, table: str) -> None:
        key = self._rng.randrange(KEYS)
        if key not in self.rows[table]:
            self._change(table, "c", key, None, {n: self._value() for n in self.columns[table]})

    def _update(self, table: str) -> None:
        if (key := self._any(table)) is not None:
            before = self.rows[table][key]
            changed = self._rng.choice(self.columns[table])
            self._change(table, "u", key, before, {**before, changed: self._value()})

    def _delete(self, table: str) -> None:
        if (key := self._any(table)) is not None:
            self._change(table, "d", key, self.rows[table][key], None)

    def _move(self, table: str) -> None:
        key, new = self._any(table), self._rng.randrange(KEYS)
        if key is not None and new not in self.rows[table]:
            self._moved(table, key, new)

    def _chain(self, table: str) -> None:
        """``SET id = id + 1 ORDER BY id DESC``: each row takes the key that the one before left."""
        for key in sorted(self.rows[table], reverse=True)[: self._rng.choice((2, 3, 6))]:
            if key + 1 not in self.rows[table]:
                self._moved(table, key, key + 1)

    def _exchange(self, table: str) -> None:
        """Two rows take each other's key, by way of a third."""
        if len(self.rows[table]) >= 2:
            one, other = self._rng.sample(sorted(self.rows[table]), 2)
            for old, new in ((one, KEYS * 10), (other, one), (KEYS * 10, other)):
                self._moved(table, old, new)

    def _shift(self, table: str) -> None:
        """``SET id = id + 1``, the least key first: the next row has its new key still."""
        few = sorted(self.rows[table])[: self._rng.choice((2, 4))]
        self._cross(table, {key: key + 1 for key in few})

    def _swap(self, table: str) -> None:
        """Two rows take each other's key at once."""
        if len(self.rows[table]) >= 2:
            one, other = self._rng.sample(sorted(self.rows[table]), 2)
            self._cross(table, {one: other, other: one})

    def _cross(self, table: str, moves: Mapping[int, int]) -> None:
        """Each row's own value tells it from the one that takes its key."""
        rows = self.rows[table]
        if (rows.keys() - moves.keys()) & {*moves.values()} or not all(
            rows[key]["v"] for key in moves
        ):
            return
        left, came = {key: rows[key] for key in moves}, dict[int, Row]()
        for old, new in moves.items():
            rows[old] = left[old]
            self._moved(table, old, new)
            came[new] = rows[new]
            rows |= came

    def _moved(self, table: str, old: int, new: int) -> None:
        """A delete under the old key and an insert under the new one."""
        row = self.rows[table][old]
        fresh = {**row, "v": self._value()} if self._rng.random() < 0.5 else dict(row)
        self._change(table, "d", old, row, None, (("__debezium.newkey", _key(new)),))
        self._change(table, "c", new, None, fresh, (("__debezium.oldkey", _key(old)),))

    def _change(
        self,
        table: str,
        op: str,
        key: int,
        before: Row | None,
        after: Row | None,
        headers: Headers = (),
    ) -> None:
        if after is None:
            del self.rows[table][key]
        else:
            self.rows[table][key] = after
        spelled = str.upper if self.respelled else str
        shown: list[Any] = [
            None if row is None else {"id": key, **{spelled(n): row[n] for n in row}}
            for row in (before, after)
        ]
        connector = "sqlserver" if self.crosses else "mysql"
        source = {"connector": connector, "db": self._database, "table": table}
        value = {"before": shown[0], "after": shown[1], "source": source, "op": op, "ts_ms": 1}
        record = pack(_key(key), msgspec.json.encode(value), headers)
        letters, targets = {"c": "I", "u": "U", "d": "D"}[op], (target_of(table), CHANGELOG)
        partition = partition_of(_key(key), self._partitions)
        if self.lost and self._partitions > 1:
            others = [n for n in range(self._partitions) if n != partition]
            partition, self.lost = self._rng.choice(others), False
        self.made.append(Message(partition, record, (letters,), targets))
        if self.tombstones and after is None:
            self.made.append(Message(partition, pack(_key(key), None)))
        for call in self.after_each:
            call()

    def _any(self, table: str) -> int | None:
        keys = sorted(self.rows[table])
        return self._rng.choice(keys) if keys else None

    def _value(self) -> str | None:
        self._numbers += 1
        return str(self._numbers) if self._rng.random() < 0.9 else None


def _key(key: int) -> bytes:
    return b'{"id":%d}' % key


def keyed_stream(
    rng: random.Random,
    steps: int,
    partitions: int,
    tables: int = 2,
    *,
    grown: int = 0,
    loses: bool = False,
    default: str | None = None,
    crosses: bool = False,
    tombstones: bool = False,
    respells: bool = False,
    bad: float = 0.0,
) -> Stream:
    """A stream over so many partitions, and the tables that it must lead to. In its middle there
    are ``grown`` of them, or one record is not where its key belongs. ``default``: columns come,
    and rows of before have this in them."""
    source = KeyedSource(rng, partitions, tables)
    source.crosses, source.tombstones, source.bad = crosses, tombstones, bad
    grows = rng.random() < 0.3 or default is not None
    for step in range(steps):
        if grows and rng.random() < 0.05:
            source.add_column(default)
        if step == steps // 2:
            source.grow(max(partitions, grown))
            source.respelled = respells
            source.lost = loses
        source.step()
    partitions = max(partitions, grown)
    shape = Shape(
        keyed=partitions,
        bad=bad,
        quarantine=rng.random() < 0.5,
        away=not (grown or loses) and rng.random() < 0.3,
        ddl=0.1 if grows else 0.0,
        reread_offsets=rng.choice((2, 20_000)),
    )
    return _laid_out(rng, shape, source)


def swapped(rng: random.Random) -> Stream:
    """One partition with two rows that take each other's key in one statement, behind a third."""
    source = KeyedSource(rng, 1, 1)
    source.crosses = True
    for key in (1, 2, 3):
        source._change("t0", "c", key, None, {"v": f"of {key}"})
    source._cross("t0", {1: 2, 2: 1})
    return _laid_out(rng, Shape(keyed=1), source)


def _laid_out(rng: random.Random, shape: Shape, source: KeyedSource) -> Stream:
    stream = Stream(shape, {})
    for number in range(shape.keyed):
        found = [message for message in source.made if message.partition == number]
        lay_out(rng, stream, TopicPartition(TOPIC, number), found)
    for name, rows in source.rows.items():
        stream.tables[target_of(name)] = {
            (str(key),): {"id": str(key), **row} for key, row in rows.items()
        }
    return stream

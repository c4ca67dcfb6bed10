"""A shop's change stream as Canal writes it, the same for the same seed, and its final state.

No Kafka here: ``messages()`` gives the stream, ``live`` and ``changelog`` hold what it must lead
to once the last message was taken.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import NamedTuple

import msgspec

from demo.clock import Clock
from demo.live import Event, LiveTable, Row
from demo.tables import TABLES, World

DATABASE = "shop"
HEAT = 1.2
"""The exponent of Zipf's law: of 15 tables the hottest gets 37 %, the coldest 1.4 %."""

_ROWS_OF_A_MESSAGE = (0.55, 0.73, 0.83, 0.90, 0.94, 0.97, 0.99)
"""Cumulative: more than half of the messages carry one row, one in a hundred carries eight."""
_FIRST_ROWS = 5
"""What each table starts with, so that others have something to refer to."""


class Message(NamedTuple):
    """One message of the stream, in the order in which it must be produced."""

    table: str
    value: bytes
    rows: int
    """How many changes it carries; 0 for a DDL statement."""


ChangelogRow = tuple[int, int, str, Row]
"""A change of a table without a key: the number of its message, its place there, I, U or D, and
the row."""


class _Flat(msgspec.Struct, gc=False):
    """Canal's FlatMessage, its members in the order in which Canal prints them."""

    data: list[dict[str, str | None]] | None
    database: str
    es: int
    gtid: str
    id: int
    isDdl: bool
    mysqlType: msgspec.Raw | None
    old: list[dict[str, str | None]] | None
    pkNames: list[str] | None
    sql: str
    sqlType: msgspec.Raw | None
    table: str
    ts: int
    type: str


class Shop:
    """One run of the shop. Take all of ``messages()`` once; then look at what is left."""

    def __init__(self, changes: int, seed: int = 1) -> None:
        """Plan a stream of so many row changes."""
        self.changes = changes
        self.live = {spec.name: LiveTable(spec) for spec in TABLES}
        self._tables = list(self.live.values())
        self.changelog: dict[str, list[ChangelogRow]] = {
            spec.name: [] for spec in TABLES if not spec.keys
        }
        self._draw = Random(seed).random
        self._world = World(self._draw, Clock(), {}, [])
        self._made = 0
        self._messages = 0
        self._encoder = msgspec.json.Encoder()
        weights = [1 / place**HEAT for place in range(1, len(TABLES) + 1)]
        self._heat = [total / sum(weights) for total in accumulate(weights[:-1])]
        self._ops = {spec.name: list(accumulate(spec.ops[:-1])) for spec in TABLES}

    def messages(self) -> Iterator[Message]:
        """Give the stream, message by message; the state here is ahead by the one just given."""
        growing = [table for table in self.live.values() if table.spec.growth is not None]
        growing.sort(key=lambda table: table.spec.growth.after if table.spec.growth else 0)
        for table in reversed(self.live.values()):
            if self._made < self.changes:
                rows = min(_FIRST_ROWS, self.changes - self._made)
                yield self._rows(table, _sure(table.insert(self._world, rows)))
        while self._made < self.changes:
            while growing and self._is_time(growing[0]):
                yield self._ddl(growing.pop(0))
            yield self._next()
        for table in growing:
            yield self._ddl(table)

    def _is_time(self, table: LiveTable) -> bool:
        growth = table.spec.growth
        return growth is not None and self._made >= growth.after * self.changes

    def _next(self) -> Message:
        """Draw the table, the number of rows and what happens to them."""
        draw, tables = self._draw, self._tables
        while True:
            table = tables[bisect(self._heat, draw())]
            rows = min(1 + bisect(_ROWS_OF_A_MESSAGE, draw()), self.changes - self._made)
            match bisect(self._ops[table.spec.name], draw()):
                case 0:
                    event = table.insert(self._world, rows)
                case 1:
                    event = table.update(self._world, rows)
                case 2:
                    event = table.delete(self._world, rows)
                case _:
                    event = table.change_keys(self._world, rows)
            if event is not None:
                return self._rows(table, event)

    def _rows(self, table: LiveTable, event: Event) -> Message:
        name = table.spec.name
        if not table.spec.keys:
            self.changelog[name] += [
                (self._messages, index, op, row) for index, (op, row) in enumerate(event.changes)
            ]
        self._made += len(event.data)
        keys = table.names[: table.spec.keys] or None
        sql_type = table.sql_type(event.data[-1])
        return self._message(
            name, event.type, event.data, event.old, keys, table.mysql_type, sql_type
        )

    def _ddl(self, table: LiveTable) -> Message:
        return self._message(table.spec.name, "ALTER", sql=table.grow())

    def _message(
        self,
        table: str,
        kind: str,
        data: list[dict[str, str | None]] | None = None,
        old: list[dict[str, str | None]] | None = None,
        keys: list[str] | None = None,
        mysql_type: msgspec.Raw | None = None,
        sql_type: msgspec.Raw | None = None,
        sql: str = "",
    ) -> Message:
        clock = self._world.clock
        clock.advance(int(self._draw() * 40))
        self._messages += 1
        seconds = clock.ms // 1000 * 1000
        batch = 1 + self._messages // 3  # one of Canal's batches gives several messages
        value = self._encoder.encode(
            _Flat(
                data, DATABASE, seconds, "", batch, bool(sql), mysql_type, old, keys, sql,
                sql_type, table, clock.ms + 137, kind,
            )
        )  # fmt: skip
        return Message(table, value, len(data) if data else 0)


def _sure(event: Event | None) -> Event:
    """The first rows of a table: nothing is there that they could collide with."""
    assert event is not None
    return event

"""A database that changes at random: its tables, and the messages that tell of each change."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.simulation.shape import Shape

CHANGELOG = "log.log.all"
LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}

UNTOLD = 25
"""Messages at the beginning that tell no format: more than a poll takes of both partitions."""

Image = dict[str, str | None]
"""A row without its key."""


def target_of(table: str) -> str:
    """Where the route leads a table's rows."""
    return f"lake.s.{table}"


@dataclass(slots=True)
class Message:
    """One message, before it has an offset. ``targets`` are those whose rows it changes."""

    partition: int
    value: bytes
    letters: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    bad: tuple[str | None, ...] = ()
    """For which targets it can't be applied; None: not even its table can be told."""


@dataclass(slots=True)
class SourceTable:
    """A table as it is now. ``columns`` are those beside the key."""

    columns: list[str] = field(default_factory=lambda: ["v"])
    rows: dict[int, Image] = field(default_factory=dict)
    chars: dict[str, int] = field(default_factory=dict)
    """Columns that were made shorter, with what they hold now."""
    doubted: bool = False
    """A statement may have changed rows that it has still."""


class Source:
    """Makes change after change. What the tables hold in the end is what the sink must hold."""

    def __init__(self, rng: random.Random, shape: Shape, tables: int) -> None:
        self._rng = rng
        self._shape = shape
        self._names = [f"t{number}" for number in range(tables)]
        self._fresh = tables + tables % 2
        self._columns = 0
        self._statements = 0
        self._commit = 0
        self._untold = UNTOLD if shape.auto else 0
        self.tables: dict[str, SourceTable] = {}
        self.dropped: set[str] = set()
        """Of those a sink may keep what it held."""

    def next(self) -> Message | None:
        """The next message, None where this time nothing came of it."""
        rng, shape = self._rng, self._shape
        if self._untold:
            self._untold -= 1
            return Message(rng.randrange(2), b"{no message", bad=(None,))
        name = rng.choice(self._names)
        kind = rng.random()
        if kind < shape.bad:
            return self._bad(name)
        table = self.tables.get(name)
        ready = table is not None and (bool(table.rows) or not shape.leaves_out)
        if table is not None and ready and kind < shape.bad + shape.ddl:
            return self._ddl(name, table)
        return self._rows(name)

    def _partition(self, name: str) -> int:
        return self._rng.randrange(2) if self._shape.lanes else int(name[1:]) % 2

    # --- rows

    def _rows(self, name: str) -> Message | None:
        rng = self._rng
        table = self.tables.setdefault(name, SourceTable(list(self._shape.columns)))
        self.dropped.discard(name)
        kind = rng.choice(("INSERT", "INSERT", "UPDATE", "UPDATE", "DELETE"))
        data: list[dict[str, Any]] = []
        old: list[dict[str, Any]] = []
        touched: set[int] = set()
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            self._row(kind, table, touched, data, old)
        if not data:
            return None
        letters = (LETTERS[kind],) * len(data)
        value = self._message(name, table.columns, kind, data, old)
        return Message(self._partition(name), value, letters, (target_of(name), CHANGELOG))

    def _row(
        self,
        kind: str,
        table: SourceTable,
        touched: set[int],
        data: list[dict[str, Any]],
        old: list[dict[str, Any]],
    ) -> None:
        """One row of a message. With positions no key is touched twice at one of them."""
        rng, rows = self._rng, table.rows
        banned = touched if self._shape.lanes else ()
        if kind == "INSERT":
            key = rng.randrange(30) if rng.random() < 0.7 else rng.randrange(10_000)
            if key in rows or key in banned:
                return
            rows[key] = self._image(table)
            touched.add(key)
            data.append({"id": str(key), **self._told(rows[key])})
            return
        keys = [key for key in sorted(rows) if key not in banned]
        if not keys:
            return
        key = rng.choice(keys)
        before = rows.pop(key)
        touched.add(key)
        if kind == "DELETE":
            image = {} if self._shape.minimal and rng.random() < 0.5 else before
            data.append({"id": str(key), **image})
            return
        fresh = rng.randrange(60) if rng.random() < self._shape.moves else key
        new = key if fresh in rows or fresh in banned else fresh
        touched.add(new)
        changed = self._changed(table)
        rows[new] = {**before, **changed}
        whole, decides = self._shape.whole, new != key or "v" in changed
        part = self._shape.minimal and not (whole is not None and decides and whole(before))
        told = changed if part else rows[new]
        data.append({"id": str(new), **told})
        moved = {"id": str(key)} if new != key else {}
        old.append({**{name: before[name] for name in changed}, **moved})

    def _told(self, row: Image) -> Image:
        """What an insert carries; what it leaves out has its default at the source."""
        if not self._shape.leaves_out:
            return row
        added = [name for name in row if name not in self._shape.columns]
        left = [name for name in added if self._rng.random() < 0.7]
        row |= dict.fromkeys(left, "d")
        return {name: value for name, value in row.items() if name not in left}

    def _image(self, table: SourceTable) -> Image:
        return {name: self._value() for name in table.columns}

    def _changed(self, table: SourceTable) -> Image:
        names = [name for name in table.columns if self._rng.random() < 0.6]
        return {name: self._value() for name in names or table.columns[:1]}

    def _value(self) -> str | None:
        number = self._rng.randrange(1000)
        return str(number) if number >= 50 else None

    # --- what can't be applied

    def _bad(self, name: str) -> Message:
        rng = self._rng
        partition = self._partition(name)
        fate = rng.randrange(3)
        if fate == 0:
            return Message(partition, b"{no message", bad=(None,))
        columns = self.tables[name].columns if name in self.tables else self._shape.columns
        row: dict[str, Any] = dict.fromkeys(columns, "1")
        if fate == 1:
            value = self._message(name, columns, "INSERT", [{"id": "no number", **row}], [])
            return Message(partition, value, bad=(target_of(name), CHANGELOG))
        # A changelog asks for no key.
        value = self._message(name, columns, "INSERT", [row], [])
        return Message(partition, value, ("I",), (CHANGELOG,), bad=(target_of(name),))

    # --- statements

    def _ddl(self, name: str, table: SourceTable) -> Message:
        adds = [self._add, self._add, self._add_and_drop]
        if self._shape.leaves_out:
            adds = [self._add]
        makes = adds if self._shape.lanes or self._shape.leaves_out else [
            *adds, self._drop_column, self._rename_column, self._truncate, self._drop, self._rename,
            self._rename, self._take_place, self._narrow,
        ]  # fmt: skip
        sql = self._rng.choice(makes)(name, table)
        self._statements += 1
        body = {"database": "s", "table": name, "isDdl": True, "type": "ALTER", "sql": sql}
        times = {"es": 1000 * self._statements, "ts": 2}
        value = msgspec.json.encode({**body, "id": 1, **times, **self._tidb()})
        return Message(self._partition(name), value)

    def _new_column(self, table: SourceTable) -> str:
        """Mostly a name that was used before: of a column that is gone, maybe kept in the sink."""
        gone = [name for name in ("a", "b", "c") if name not in table.columns]
        # With positions the statement may come behind rows that have the column.
        if gone and not self._shape.lanes and self._rng.random() < 0.8:
            return self._rng.choice(gone)
        self._columns += 1
        return f"c{self._columns}"

    def _add(self, name: str, table: SourceTable) -> str:
        column = self._new_column(table)
        plain = self._shape.lanes or self._rng.random() < 0.5
        default = "d" if self._shape.leaves_out or not plain else None
        table.columns.append(column)
        for row in table.rows.values():
            row[column] = default
        said = "" if default is None else f" DEFAULT '{default}'"
        return f"ALTER TABLE {name} ADD COLUMN {column} VARCHAR(20){said}"

    def _add_and_drop(self, name: str, table: SourceTable) -> str:
        """Two clauses of one statement."""
        if len(table.columns) < 2:
            return self._add(name, table)
        gone = self._rng.choice(table.columns)
        added = self._add(name, table)
        self._take_away(table, gone)
        return f"{added}, DROP COLUMN {gone}"

    def _drop_column(self, name: str, table: SourceTable) -> str:
        if len(table.columns) < 2:
            return self._add(name, table)
        gone = self._rng.choice(table.columns)
        self._take_away(table, gone)
        return f"ALTER TABLE {name} DROP COLUMN {gone}"

    @staticmethod
    def _take_away(table: SourceTable, gone: str) -> None:
        table.columns.remove(gone)
        table.chars.pop(gone, None)
        for row in table.rows.values():
            del row[gone]

    def _rename_column(self, name: str, table: SourceTable) -> str:
        old, new = self._rng.choice(table.columns), self._new_column(table)
        table.columns[table.columns.index(old)] = new
        for row in table.rows.values():
            row[new] = row.pop(old)
        room = table.chars.pop(old, None)
        if room is not None:
            table.chars[new] = room
            return f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"
        if self._rng.random() < 0.5:
            return f"ALTER TABLE {name} CHANGE {old} {new} VARCHAR(20)"
        return f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"

    def _narrow(self, name: str, table: SourceTable) -> str:
        """A type that may cut off what is stored, though it does not: nobody can tell."""
        column = self._rng.choice(table.columns)
        room = table.chars[column] = table.chars.get(column, 20) - 1
        table.doubted |= bool(table.rows)
        return f"ALTER TABLE {name} MODIFY {column} CHAR({room})"

    def _truncate(self, name: str, table: SourceTable) -> str:
        table.rows.clear()
        table.doubted = False
        return f"TRUNCATE TABLE {name}"

    def _drop(self, name: str, table: SourceTable) -> str:
        del self.tables[name]
        self.dropped.add(name)
        return f"DROP TABLE {name}"

    def _free_name(self, like: str) -> str:
        """Another name in the same partition, often one that a table had before."""
        names = [
            n for n in self._names if n not in self.tables and int(n[1:]) % 2 == int(like[1:]) % 2
        ]
        if names and self._rng.random() < 0.7:
            return self._rng.choice(names)
        self._fresh += 2
        name = f"t{self._fresh + int(like[1:]) % 2}"
        self._names.append(name)
        return name

    def _rename(self, name: str, table: SourceTable) -> str:
        new = self._free_name(name)
        self._move(name, new)
        return f"RENAME TABLE {name} TO {new}"

    def _take_place(self, name: str, table: SourceTable) -> str:
        """Another table takes its place at once."""
        others = [n for n in self.tables if n != name and int(n[1:]) % 2 == int(name[1:]) % 2]
        if not others:
            return self._rename(name, table)
        aside, other = self._free_name(name), self._rng.choice(others)
        self._move(name, aside)
        self._move(other, name)
        return f"RENAME TABLE {name} TO {aside}, {other} TO {name}"

    def _move(self, name: str, new: str) -> None:
        self.tables[new] = self.tables.pop(name)
        self.dropped.discard(new)

    # --- the text

    def _tidb(self) -> dict[str, Any]:
        self._commit += 1
        return {"_tidb": {"commitTs": self._commit}} if self._shape.lanes else {}

    def _message(
        self,
        table: str,
        columns: Iterable[str],
        kind: str,
        data: list[dict[str, Any]],
        old: list[dict[str, Any]],
    ) -> bytes:
        columns = tuple(columns)
        return msgspec.json.encode(
            {
                "id": 1,
                "database": "s",
                "table": table,
                "pkNames": ["id"],
                "isDdl": False,
                "type": kind,
                "es": 1,
                "ts": 2,
                "sql": "",
                "sqlType": {"id": 4, **dict.fromkeys(columns, 12)},
                "mysqlType": {"id": "int(11)", **dict.fromkeys(columns, "varchar(20)")},
                "data": data,
                "old": old if kind == "UPDATE" else None,
                **self._tidb(),
            }
        )

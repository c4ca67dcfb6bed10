"""One table of the source: what its rows are, and the messages that made them so.

Each step can be taken back, for the transaction it belongs to may be aborted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.integration.rig import MYSQL_TYPES, canal, ddl

Value = int | str | None
Row = dict[str, Value]

ROWS = 300
"""About so many rows a table: from there on as many go as come. Fewer, and updates rarely meet an
old row; more, and a long run measures the table's growth."""
NEWEST = 50
"""Updates and deletes take one of the newest rows, as most sources do."""
EXTRA = 3
"""Columns that a table may have beside its first three."""


@dataclass(slots=True)
class Table:
    """Used by one thread. ``undo`` grows with each step; whoever commits clears it."""

    db: str
    name: str
    rng: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)
    """Columns that came by ALTER, with their DEFAULT, in their order."""
    undo: list[Callable[[], object]] = field(default_factory=list)
    _keys: int = 0
    _columns: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """As the source has them now."""
        return ("id", "name", "qty", *self.extra)

    def expected(self) -> list[tuple[Value, ...]]:
        """All rows, ordered by key, each with the columns in their order."""
        return [tuple(self.rows[key][c] for c in self.columns) for key in sorted(self.rows)]

    def roll_back(self) -> None:
        """Take back all since the last commit."""
        while self.undo:
            self.undo.pop()()

    # --- rows

    def change(self) -> bytes:
        """A change of one row; its message."""
        kinds = ["INSERT", "INSERT", "UPDATE", "UPDATE", "UPDATE", "DELETE", "MOVE", "AGAIN"]
        if len(self.rows) > ROWS:
            kinds += ["DELETE"] * 3
        kind = self.rng.choice(kinds) if self.rows else "INSERT"
        if kind == "INSERT":
            self._keys += 1
            return self._insert(self._keys)
        key = self.rng.choice(list(self.rows)[-NEWEST:])
        if kind == "DELETE":
            return self._message("DELETE", self._remove(key))
        if kind == "AGAIN":  # a key that was there before, mostly
            again = self.rng.randrange(1, self._keys + 1)
            if again not in self.rows:
                return self._insert(again)
        if kind == "MOVE":
            self._keys += 1
            return self._update(key, self._keys)
        return self._update(key, key)

    def bad(self) -> bytes:
        """A record that no target can take: it changes nothing."""
        return canal(f"{self.db}.{self.name}", "INSERT", [{"id": 1, "name": "x", "qty": "many"}])

    def _insert(self, key: int) -> bytes:
        row: Row = {"id": key, "name": self._name(), "qty": self.rng.randrange(1000)}
        row |= {column: self.rng.randrange(100) for column in self.extra}
        self._put(key, row)
        return self._message("INSERT", row)

    def _update(self, key: int, new: int) -> bytes:
        before = self._remove(key)
        changed: Row = {"name": self._name(), "qty": self.rng.randrange(1000)}
        changed |= {"id": new} if new != key else {}
        changed |= {column: self.rng.randrange(100) for column in self.extra}
        row = before | changed
        self._put(new, row)
        old = {column: _text(before[column]) for column in changed}
        return self._message("UPDATE", row, old=[old])

    def _put(self, key: int, row: Row) -> None:
        self.rows[key] = row
        self.undo.append(lambda: self.rows.pop(key))

    def _remove(self, key: int) -> Row:
        row = self.rows.pop(key)
        self.undo.append(lambda: self.rows.__setitem__(key, row))
        return row

    def _name(self) -> str | None:
        return None if self.rng.random() < 0.1 else f"n{self.rng.randrange(10**6)}"

    def _message(self, kind: str, row: Row, **more: object) -> bytes:
        types = MYSQL_TYPES | dict.fromkeys(self.extra, "int(11)")
        return canal(f"{self.db}.{self.name}", kind, [row], mysqlType=types, **more)

    # --- statements

    def alter(self) -> bytes:
        """A statement on the table's columns, or one that empties it; its message."""
        kinds = ["ADD"] * (len(self.extra) < EXTRA) + ["RENAME", "DROP"] * bool(self.extra)
        kind = self.rng.choice([*kinds, "TRUNCATE"] if self.rng.random() < 0.3 else kinds)
        self._remember()
        if kind == "TRUNCATE":
            self.rows = {}
            return ddl(f"{self.db}.{self.name}", "TRUNCATE", f"TRUNCATE TABLE {self.name}")
        if kind == "ADD":
            name, default = self._column(), self.rng.randrange(100)
            self.extra = self.extra | {name: default}
            self.rows = {key: row | {name: default} for key, row in self.rows.items()}
            return self._alter(f"ADD COLUMN {name} int NOT NULL DEFAULT {default}")
        old = self.rng.choice(list(self.extra))
        if kind == "DROP":
            self._rename({old: None})
            return self._alter(f"DROP COLUMN {old}")
        new = self._column()
        self._rename({old: new})
        return self._alter(f"RENAME COLUMN {old} TO {new}")

    def _remember(self) -> None:
        rows, extra = self.rows, self.extra

        def take_back() -> None:
            self.rows, self.extra = rows, extra

        self.undo.append(take_back)

    def _rename(self, names: dict[str, str | None]) -> None:
        """Give columns other names, or (None) take them away."""
        keep = [(c, new) for c in self.columns if (new := names.get(c, c)) is not None]
        self.extra = {new: self.extra[old] for old, new in keep if old in self.extra}
        self.rows = {k: {new: row[old] for old, new in keep} for k, row in self.rows.items()}

    def _column(self) -> str:
        """A name that no column ever had."""
        self._columns += 1
        return f"c{self._columns}"

    def _alter(self, what: str) -> bytes:
        return ddl(f"{self.db}.{self.name}", "ALTER", f"ALTER TABLE {self.name} {what}")


def _text(value: Value) -> str | None:
    return None if value is None else str(value)

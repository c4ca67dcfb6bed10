"""One table of the shop while it lives: its rows, and the row events that change them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from demo.tables import Field, Table, World

Row = tuple[str | None, ...]  # no lists: the garbage collector passes tuples of texts over
Key = tuple[str | None, ...]
Rows = list[dict[str, str | None]]

_REMEMBERED = 1000
"""How many rows of a table without a key may still be updated or deleted: the latest ones."""

_SQL_TYPES = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "decimal": 3, "float": 7,
    "double": 8, "char": 1, "varchar": 12, "tinytext": 2005, "text": 2005, "mediumtext": 2005,
    "longtext": 2005, "date": 91, "datetime": 93, "timestamp": 93,
}  # fmt: skip
_STEPPED_UP = {
    "tinyint": (2**7 - 1, 5), "smallint": (2**15 - 1, 4), "int": (2**31 - 1, -5),
    "bigint": (2**63 - 1, 3),
}  # fmt: skip
"""Canal tells the next larger type where an unsigned value has its top bit set."""


class Event(msgspec.Struct, gc=False):
    """What one row event did: the rows as a message tells them."""

    type: str
    data: Rows
    old: Rows | None
    changes: list[tuple[str, Row]]
    """Each row as a changelog has it: I, U or D, and the row after it (before it, for D)."""


class LiveTable:
    """The rows of one table, and the events that change them, drawn from a World."""

    def __init__(self, spec: Table) -> None:
        """Start empty."""
        self.spec = spec
        self.rows: dict[Key, Row] = {}
        self.fields: list[Field] = list(spec.fields)
        self._keys: list[Key] = []  # in order of age, keys of dead rows among them
        self._serial = 0
        self._lay_out()

    def _lay_out(self) -> None:
        self.names = [field.name for field in self.fields]
        self._makers = [field.make for field in self.fields]
        self.mysql_type = msgspec.Raw(
            msgspec.json.encode({field.name: field.mysql_type for field in self.fields})
        )
        self._unsigned = [
            (field.name, *_STEPPED_UP[field.mysql_type.partition("(")[0]])
            for field in self.fields
            if field.mysql_type.endswith("unsigned") and "medium" not in field.mysql_type
        ]
        self._plain_types = {
            field.name: _SQL_TYPES[field.mysql_type.partition("(")[0].partition(" ")[0]]
            for field in self.fields
        }
        self._sql_types: dict[tuple[tuple[str, int], ...], msgspec.Raw] = {}

    def grow(self) -> str:
        """Add the column of ``spec.growth``; gives the statement."""
        growth = self.spec.growth
        assert growth is not None
        self.fields.append(growth.field)
        self.rows = {key: (*row, growth.default) for key, row in self.rows.items()}
        self._lay_out()
        field = growth.field
        return (
            f"/* shop */ ALTER TABLE `{self.spec.name}`"
            f" ADD COLUMN `{field.name}` {field.mysql_type} {growth.definition}"
        )

    def sql_type(self, row: dict[str, str | None]) -> msgspec.Raw:
        """Give the sqlType member of a message whose last row this is, as Canal drifts it."""
        stepped: tuple[tuple[str, int], ...] = ()
        for name, limit, larger in self._unsigned:
            value = row[name]
            if value is not None and int(value) > limit:
                stepped += ((name, larger),)
        if stepped not in self._sql_types:
            types = self._plain_types | dict(stepped)
            self._sql_types[stepped] = msgspec.Raw(msgspec.json.encode(types))
        return self._sql_types[stepped]

    def insert(self, world: World, count: int) -> Event | None:
        """Insert rows; fewer, or None, where the keys drawn were all there already."""
        rows, makers, names = self.rows, self._makers, self.names
        inserted = []
        for _ in range(count):
            row = tuple([make(world) for make in makers])
            key = self._key(row)
            if key not in rows:
                rows[key] = row
                self._keys.append(key)
                inserted.append(row)
        if not self.spec.keys:
            self._forget()
        if not inserted:
            return None
        data = [dict(zip(names, row)) for row in inserted]  # noqa: B905 (a third of the time)
        return Event("INSERT", data, None, [("I", row) for row in inserted])

    def update(self, world: World, count: int) -> Event | None:
        """Change columns outside the key; None where nothing differs afterwards.

        ``old`` over-reports as Canal's does: what one row of the message changed is told of all
        the rows after it.
        """
        event = Event("UPDATE", [], [], [])
        updated: set[int] = set()
        makers = self._makers
        free = len(makers) - self.spec.keys
        for key in self._pick(world, count):
            before = self.rows[key]
            after = list(before)
            changed = False
            for _ in range(1 + int(world.draw() * 3)):
                place = self.spec.keys + int(world.draw() * free)
                value = after[place] = makers[place](world)
                if value != before[place]:
                    changed = True
                    updated.add(place)
            if changed:
                self._put(event, key, before, key, tuple(after), updated)
        return event if event.data else None

    def change_keys(self, world: World, count: int) -> Event | None:
        """Move rows to other keys; None where the new ones were taken."""
        event = Event("UPDATE", [], [], [])
        updated: set[int] = set()
        pairs = self._shifted(world, count) if self.spec.shifts else self._moved(world, count)
        for key, after in pairs:
            before = self.rows[key]
            new_key = self._key(after)
            if new_key in self.rows:
                continue
            updated.update(place for place, value in enumerate(after) if value != before[place])
            self._put(event, key, before, new_key, after, updated)
        return event if event.data else None

    def delete(self, world: World, count: int) -> Event | None:
        """Delete rows; None where there is none."""
        event = Event("DELETE", [], None, [])
        for key in self._pick(world, count):
            row = self.rows.pop(key)
            event.data.append(dict(zip(self.names, row, strict=True)))
            event.changes.append(("D", row))
        return event if event.data else None

    def _moved(self, world: World, count: int) -> Iterator[tuple[Key, Row]]:
        """Rows with one part of the key drawn anew."""
        for key in self._pick(world, count):
            after = list(self.rows[key])
            place = world.below(self.spec.keys)
            after[place] = self._makers[place](world)
            yield key, tuple(after)

    def _shifted(self, world: World, count: int) -> Iterator[tuple[Key, Row]]:
        """A run of consecutive numbers in the key's last part, each one up, the last one first.

        Nothing where the run is longer than ``count``: a part of it can't move.
        """
        for first in self._pick(world, 1):
            run = [first]
            while len(run) <= count and (following := _one_up(run[-1])) in self.rows:
                run.append(following)
            for key in reversed(run if len(run) <= count else []):
                yield key, _one_up(key) + self.rows[key][self.spec.keys :]

    def _put(
        self, event: Event, key: Key, before: Row, new_key: Key, after: Row, updated: set[int]
    ) -> None:
        """Store an updated row and tell it in the event."""
        names = self.names
        if new_key != key:
            del self.rows[key]
            self._keys.append(new_key)
        self.rows[new_key] = after
        assert event.old is not None
        event.data.append(dict(zip(names, after, strict=True)))
        event.old.append({names[place]: before[place] for place in sorted(updated)})
        event.changes.append(("U", after))

    def _pick(self, world: World, count: int) -> list[Key]:
        """Choose different living rows, the young far more often than the old."""
        keys, rows = self._keys, self.rows
        picked: list[Key] = []
        for _ in range(4 * count):
            if len(picked) == count or not rows:
                break
            place = len(keys) - 1 - int(len(keys) * world.draw() ** 3)
            key = keys[place]
            if key not in rows:
                keys[place] = keys[-1]
                keys.pop()
            elif key not in picked:
                picked.append(key)
        return picked

    def _key(self, row: Row) -> Key:
        if self.spec.keys:
            return row[: self.spec.keys]
        self._serial += 1
        return (str(self._serial),)

    def _forget(self) -> None:
        """Drop the oldest rows of a table without a key from memory; at the source they stay."""
        while len(self.rows) > _REMEMBERED:
            del self.rows[next(iter(self.rows))]


def _one_up(key: Key) -> Key:
    number = key[-1]
    assert number is not None
    return (*key[:-1], str(int(number) + 1))

"""The table at the source as other formats tell of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from changes.formats.engine.format import pack, unpack
from tests.changes.formats.debezium.messages import MYSQL, POSTGRES, dumps, envelope
from tests.changes.formats.json_messages import maxwell, ogg
from tests.shaping.rig import Change, Row, Source

TYPES = (("id", "int"), ("n", "int"), ("phone", "varchar(20)"), ("note", "varchar(40)"))
"""Of columns whose messages declare none."""

PLACEHOLDER = "__debezium_unavailable_value"

Write = Callable[[str, Row | None, Row | None], list[bytes]]
"""The messages of a change: its letter, the row before and after it."""


class Told(Source):
    """Makes the changes, and tells of them by whole rows."""

    def __init__(self, write: Write) -> None:
        super().__init__(minimal=False)
        self._write = write

    def messages(self, change: Change) -> list[bytes]:
        """Make a change; nothing where it can't be made."""
        before = {key: {"id": key, **row} for key, row in self.rows.items()}
        if self.message(change) is None:
            return []
        after = {key: {"id": key, **row} for key, row in self.rows.items()}
        if change.kind in "ID":
            return self._write(change.kind, before.get(change.key), after.get(change.key))
        moved = change.key not in after
        return self._write("U", before[change.key], after[change.new if moved else change.key])


def _maxwell(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    if op == "U":
        assert was is not None
        assert now is not None
        old = {name: value for name, value in was.items() if value != now[name]}
        return [maxwell("update", now, old, table="users")]
    return [maxwell("insert" if op == "I" else "delete", now or was, table="users")]


def _ogg(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    return [ogg(op, now, was, table="SHOP.USERS")]


def _debezium(op: str, was: Row | None, now: Row | None, source: Row = MYSQL) -> list[bytes]:
    """A row whose key changes is deleted, and made again."""
    if op == "U" and was is not None and now is not None and was["id"] != now["id"]:
        return [*_debezium("D", was, None, source), *_debezium("I", None, now, source)]
    row = now or was
    assert row is not None
    letter = {"I": "c", "U": "u", "D": "d"}[op]
    return [pack(dumps({"id": row["id"]}), dumps(envelope(letter, now, was, source)))]


def upsert(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    """As a compacted topic has it. A row whose key changes is deleted, and made again."""
    gone = was is not None and (now is None or now["id"] != was["id"])
    rows = [(was, None)] * gone + [(now, dumps(now))] * (now is not None)
    return [pack(dumps({"id": row["id"]}), value) for row, value in rows if row is not None]


def upsert_without_nulls(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    """As a writer has it that leaves out nulls, and the key's columns."""
    short = now and {n: v for n, v in now.items() if v is not None and n != "id"}
    records = map(unpack, upsert(op, was, now))
    return [pack(each.key, None if each.value is None else dumps(short)) for each in records]


WRITES: dict[str, Write] = {"maxwell-json": _maxwell, "ogg-json": _ogg, "debezium-json": _debezium}


def debezium_toast(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    """As PostgreSQL logs a large value that an update leaves as it is: not at all."""
    if op != "U" or was is None or now is None or was["id"] != now["id"]:
        return _debezium(op, was, now, POSTGRES)
    sent = dict(now) if was["note"] != now["note"] else {**now, "note": PLACEHOLDER}
    row = {"id": now["id"]}
    return [pack(dumps(row), dumps(envelope("u", sent, None, POSTGRES)))]


def debezium_keys_alone(op: str, was: Row | None, now: Row | None) -> list[bytes]:
    """As PostgreSQL logs rows by default: of the row before it the key alone."""
    if op == "I" or (op == "U" and was is not None and now is not None and was["id"] != now["id"]):
        return _debezium(op, was, now)
    row: dict[str, Any] | None = now or was
    assert row is not None
    before = {"id": row["id"]} if op == "D" else None
    return [pack(dumps({"id": row["id"]}), dumps(envelope("u" if now else "d", now, before)))]

"""The heads of messages of entries, of one or of many at once (flat_rows.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from changes.formats.engine.flat_rows import blocks_of, worth_it
from changes.formats.engine.json_text import Members, is_list, is_object, members, word
from changes.model.model import Head, Kind, TableName

NOTHING = Head(Kind.NOTHING, None)
_DDL = Head(Kind.DDL, None)
MULTI_ENTRY = Head(Kind.MULTI_ENTRY, None)


def head_of(entries: Iterable[tuple[Kind, TableName]]) -> Head:
    """One head for a message: its rows' one table, or MULTI_ENTRY where it has to be split.

    All entries are read, so an error in the last one is found before the first is dispatched.
    """
    found = {each for each in entries if each[0] is not Kind.NOTHING}
    if not found:
        return NOTHING
    if len(found) == 1:
        kind, table = found.pop()
        return Head(kind, table) if kind is Kind.ROWS else _DDL
    return _DDL if all(kind is Kind.DDL for kind, _ in found) else MULTI_ENTRY


# Heads of many messages by one call of protobuf's parser.

MOST_HEADS = 500
"""Messages read at once. After a bad one those behind it are read again: more would waste more."""

Quick = Callable[[Sequence[bytes]], Sequence[Head | None] | None]
"""Returns heads; None, for one message or for all, where each has to be read by itself."""


def heads_of_all(
    values: Iterable[bytes | None], quick: Quick, peek: Callable[[bytes | None], Head]
) -> Iterator[Head]:
    """The heads in order; raises what ``peek`` raises, on reaching the bad message."""
    listed = list(values)
    whole = [value for value in listed if value is not None]
    if len(whole) < len(listed):
        yield from map(peek, listed)
        return
    for _, some in blocks_of(whole, MOST_HEADS):
        known = quick(some) if worth_it(some) else None
        if known is None:
            yield from map(peek, some)
        else:
            for value, head in zip(some, known, strict=True):
                yield head or peek(value)


MOST_TIMES = 1000
"""Messages whose times are read at once. One that is unlike the others has them all read singly."""


def times_of_all(
    values: Sequence[bytes],
    quick: Callable[[Sequence[bytes]], Sequence[int] | None],
    one: Callable[[bytes], int | None],
) -> list[int | None]:
    """The times of messages' changes, in order. ``quick``: of many, 0 where there is none; None
    where each has to be read by itself."""
    found: list[int | None] = []
    for _, some in blocks_of(values, MOST_TIMES):
        known = quick(some) if worth_it(some) else None
        found += map(one, some) if known is None else [time if time > 0 else None for time in known]
    return found


class HeadCache:
    """A cache of the heads of rows by their tables' names, for one call."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], Head] = {}

    def heads(self, databases: Iterable[bytes], tables: Iterable[bytes]) -> list[Head]:
        """Raises UnicodeDecodeError; a name that is empty raises ValueError."""
        known = self._known
        pairs = list(zip(databases, tables, strict=True))
        for pair in set(pairs) - known.keys():
            database, table = pair[0].decode(), pair[1].decode()
            if not database or not table:
                raise ValueError("a row of no table")
            known[pair] = Head(Kind.ROWS, TableName(database, table))
        return [known[pair] for pair in pairs]

    def head(self, databases: Sequence[bytes], tables: Sequence[bytes]) -> Head:
        """Of a message with entries of rows of these tables; raises as ``heads``."""
        found = set(self.heads(databases, tables))
        if not found:
            return NOTHING
        return found.pop() if len(found) == 1 else MULTI_ENTRY


def stretches(flat: Sequence[Any], mark: object, count: int) -> list[Sequence[Any]]:
    """The values of each of ``count`` marked stretches; raises ValueError if a mark is missing."""
    found = []
    start = 0
    for _ in range(count):
        end = flat.index(mark, start)
        found.append(flat[start:end])
        start = end + 1
    if start != len(flat):
        raise ValueError("there is text after the last mark")
    return found


# Recognises envelopes of writers that binlogd does not read, so that errors can name them.

_DMS = frozenset(("record-type", "operation"))
_DATAWORKS = "the JSON of Aliyun DataWorks"
_DMS_TABLE = frozenset(("schema-name", "table-name"))


def foreign(found: Members) -> str | None:
    """The writer of a record by its outermost members, None where it is none of these."""
    if is_object(found, "metadata"):
        inner = members(found["metadata"])
        if inner.keys() >= _DMS and inner.keys() & _DMS_TABLE:
            return "AWS DMS's JSON"
    if is_object(found, "payload"):
        if is_list(members(found.get("schema")), "dataColumn"):
            return _DATAWORKS
        inner = members(found["payload"])
        images = (members(inner.get(name)) for name in ("before", "after"))
        if any(is_object(image, "dataColumn") for image in images):
            return _DATAWORKS
        if word(inner, "op") == "MHEARTBEAT":
            return _DATAWORKS
    return None

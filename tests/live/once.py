"""Whether a topic holds each transaction of the source once, whole and in order. Pure.

A keyed target would be equal after a double, so the records themselves are looked at. Three truths
stand beside each other: Debezium numbers the rows of a transaction and counts them at its end; each
row has its position in the source's log; and a writer has put numbers into one table, each
transaction the next few. The first is not enough: a reader that was killed within a transaction
begins it again with a second BEGIN, and from there numbers and counts the rows that are left. What
may be lost there shows in the others, or in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from tests.live.sources import FIRST_NUMBER, MARKER

SHOWN = 6
"""So many faults of a topic are shown."""
Record = Mapping[str, Any]


@dataclass(slots=True)
class _Transaction:
    """One, as far as it came."""

    name: str
    counted: int = 0
    """Rows since its last BEGIN."""
    rows: int = 0
    ended: bool = False
    at: tuple[Any, ...] = ()
    """Where its last row is in the log."""
    op: str = ""


@dataclass(slots=True)
class _Seen:
    """Of a topic, up to some record."""

    now: _Transaction = field(default_factory=lambda: _Transaction("none", ended=True))
    names: set[str] = field(default_factory=set)
    end: int = 0
    """Where the last transaction with rows ends in the log."""
    number: int = FIRST_NUMBER - 1
    writers: dict[str, int] = field(default_factory=dict)
    """By transaction of the writer's: its last number so far."""
    faults: list[str] = field(default_factory=list)

    def doubt(self, what: str) -> None:
        """Note a fault of the transaction that is under way."""
        self.faults.append(f"transaction {self.now.name}{what}")


def faults(records: Iterable[Record], written: Iterable[int]) -> list[str]:
    """What is wrong, in the topic's order; nothing where all is there once.

    ``records``: the payloads of a topic of one partition, read committed from its beginning, while
    nobody writes. ``written``: the last number of each of the writer's transactions, rising.
    """
    seen = _Seen()
    for record in records:
        if "op" in record:
            _row(seen, record)
        elif record.get("status") == "BEGIN":
            _begin(seen, _name(record["id"]))
        elif record.get("status") == "END":
            _end(seen, record)
    _leave(seen)
    _writer(seen, written)
    return seen.faults


def _begin(seen: _Seen, name: str) -> None:
    if name == seen.now.name:
        seen.now.counted = 0  # again, by the next reader
        return
    _leave(seen)
    seen.now = _Transaction(name)
    if name in seen.names:
        seen.doubt(" comes a second time")
    seen.names.add(name)


def _leave(seen: _Seen) -> None:
    if seen.now.rows and not seen.now.ended:
        seen.doubt(" has rows and no end")


def _row(seen: _Seen, record: Record) -> None:
    about, source, now = record.get("transaction"), record["source"], seen.now
    if about is None or _name(about["id"]) != now.name:
        seen.doubt(f" is under way, and a row is of {about}")
        return
    if now.ended:
        seen.doubt(" has a row behind its end")
    now.counted += 1
    if about["total_order"] != now.counted:
        seen.doubt(f": its row {now.counted} says that it is row {about['total_order']}")
    if record["op"] == "t" and "file" in source:
        return  # a statement of MariaDB's, which has no end, and the position of the row before
    now.rows += 1
    at = _at(source)
    # An UPDATE of a key is the end of one row and the beginning of another, at one position.
    is_pair = at == now.at and (now.op, record["op"]) == ("d", "c")
    if now.at and not is_pair and not _follows(at, now.at, is_first=now.counted == 1):
        seen.doubt(f": a row at {at} follows one at {now.at}")
    now.at, now.op = at, record["op"]
    if record["op"] == "c" and source.get("table") == MARKER:
        _number(seen, int(record["after"]["id"]))


def _number(seen: _Seen, number: int) -> None:
    if number < FIRST_NUMBER:
        return  # a checkpoint's, or a beat
    if number != seen.number + 1:
        seen.doubt(f" has number {number} behind {seen.number}")
    seen.number = number
    seen.writers[seen.now.name] = number


def _end(seen: _Seen, record: Record) -> None:
    now, count = seen.now, record["event_count"]
    if _name(record["id"]) != now.name:
        seen.doubt(f" is under way, and {record['id']} ends")
        return
    if count != now.counted or count != sum(t["event_count"] for t in record["data_collections"]):
        seen.doubt(f" counts {count} rows, and has {now.counted}")
    if now.ended and count:
        seen.doubt(" ends a second time")
    if count and _place(record["id"]) <= seen.end:
        seen.doubt(" ends before the one before it")
    seen.end = max(seen.end, _place(record["id"]))
    now.ended = True


def _writer(seen: _Seen, written: Iterable[int]) -> None:
    """The first of the writer's transactions that is not as it was written."""
    for number, (there, wanted) in enumerate(zip_longest(seen.writers.values(), written), 1):
        if there != wanted:
            seen.faults.append(f"the writer's transaction {number} ends at {wanted}, not {there}")
            return


def _at(source: Mapping[str, Any]) -> tuple[Any, ...]:
    """MariaDB: file, event, row of it. PostgreSQL: the position, which rows that were written many
    at once have in common."""
    return (source["file"], source["pos"], source["row"]) if "file" in source else (source["lsn"],)


def _follows(at: tuple[Any, ...], before: tuple[Any, ...], *, is_first: bool) -> bool:
    """``is_first``: by another reader than the row before."""
    if len(at) == 1:
        return at > before if is_first else at >= before
    same = at[:2] == before[:2]
    return bool(at[2] == before[2] + 1 if same else at > before and at[2] == 0)


def _name(transaction: str) -> str:
    """Of a GTID (``0-2-17``) all; of PostgreSQL's (``730:26``) the number before each record's own
    position."""
    return transaction.partition(":")[0]


def _place(end: str) -> int:
    """Of an end's transaction: a GTID's number, the position behind a commit."""
    return int(end.replace(":", "-").rsplit("-", 1)[-1])

"""What a message of the log says of its source's row events, and of their transaction's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from changes.model.model import TableName


class RowEvent(NamedTuple):
    """One row event of a table.

    ``op``: I, U or D; T is a truncation, and empty the first half of a changed key, whose second
    half is the U. ``time_ms``: by the source's clock, in milliseconds since 1970; None where the
    message does not tell. ``read``: it was read from the table, not from the source's log.
    """

    table: TableName
    op: str
    time_ms: int | None
    read: bool = False
    transaction: str | None = None
    """The transaction's name, as ``TransactionMark`` has it."""
    order: int | None = None
    """The event's number among its transaction's of this table, from 1."""
    source: str | None = None
    """The name of the source that numbers its transactions."""


class TransactionMark(NamedTuple):
    """The beginning or the end of a transaction, as the log has it between row events.

    ``tables``: of an end, by the source's name of each table how many events it has, truncations
    and both halves of a changed key counted; None where it does not say, or contradicts itself.
    """

    id: str
    ends: bool
    time_ms: int | None
    tables: Mapping[str, int] | None = None
    events: int = 0
    """Of an end how many events it has in all, also those that are of no table."""


class TransactionPart(NamedTuple):
    """One event of a transaction that may lie in several partitions.

    ``order``: its number among all events of its transaction, from 1. ``id`` None: it is a change,
    and does not say of which transaction.
    """

    id: str | None
    order: int


Told = RowEvent | TransactionMark

"""Where a message says that its change is in its source's log, as the source's readers write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """What a message tells; None: it does not.

    ``gtid``: of its transaction (MySQL ``UUID:7``, MariaDB ``0-1-7``). ``file`` and ``pos``: in the
    binary log of the server that its reader reads, not before the change's transaction begins and
    not after it ends. ``lsn``: in PostgreSQL's log, at or before its transaction's commit.
    """

    gtid: str | None = None
    file: str | None = None
    pos: int | None = None
    lsn: int | None = None


class TransactionEnd(NamedTuple):
    """The end of a transaction in the log: its name there, and when it was committed by the
    source's clock, in milliseconds since 1970, each where that is told."""

    id: str | None
    time_ms: int | None


class Transactions(NamedTuple):
    """The transactions of a message's first and last changes, as the log names them. Where two
    names differ, so do the transactions; two transactions may have one name."""

    first: str
    last: str


def transactions_among(names: Sequence[str | None]) -> Transactions | None:
    """Of a message with changes of transactions of these names, in order; None where the first or
    the last has none."""
    if not names or not names[0] or not names[-1]:
        return None
    return Transactions(names[0], names[-1])


NOWHERE = Place()

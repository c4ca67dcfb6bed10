"""Where a message says that its change is in its source's log, as the source's readers write it."""

from __future__ import annotations

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
    source's clock, in milliseconds since 1970, where that is told."""

    id: str
    time_ms: int | None


NOWHERE = Place()

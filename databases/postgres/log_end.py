"""Where PostgreSQL's log ends, and when all of it is visible to reads.

A commit is in the log before reads see it: it may wait for a standby. Until it is visible its
transaction holds the lock on its own number, which any user may see. A snapshot does not tell it:
a number above all that are over is not in its list.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from databases.base.log_end import LogEnd, NoEnd, WalEnd

Ask = Callable[[str], list[tuple[object, ...]]]

_OWN = re.compile(r"PostgreSQL [0-9.]+(devel|beta[0-9]+|rc[0-9]+)? ")
"""Others speak its language and commit in their own way."""

_SERVER = """
SELECT version(), pg_is_in_recovery(), (SELECT count(*) FROM pg_replication_origin),
(SELECT count(*) FROM pg_replication_slots
 WHERE slot_type = 'logical' AND active AND database = current_database()),
CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END
- '0/0'::pg_lsn"""

_WRITING = """
SELECT transactionid::text FROM pg_locks
WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted"""


def log_end(ask: Ask) -> LogEnd:
    """Where the server's log ends. Any user may query this."""
    ((version, standby, origins, readers, lsn),) = ask(_SERVER)
    if _OWN.match(str(version)) is None:
        return NoEnd(f"it is another server than PostgreSQL: {version}")
    if standby:
        return NoEnd("it is a standby")
    if int(str(origins)):
        return NoEnd("it replicates another server (pg_replication_origin)")
    if not int(str(readers)):
        return NoEnd("no slot reads the log of this database (pg_replication_slots)")
    return WalEnd(int(str(lsn)), tuple(_writing(ask)))


def shows(ask: Ask, end: LogEnd) -> bool:
    """Whether reads have all that was in the log at its end then."""
    return isinstance(end, WalEnd) and not set(_writing(ask)) & set(end.committing)


def _writing(ask: Ask) -> list[str]:
    return [str(row[0]) for row in ask(_WRITING)]

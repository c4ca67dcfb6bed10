"""A MySQL whose ``gtid_mode`` changed, and what Debezium's position is worth then.

Debezium goes by GTIDs where the mode is ON when it starts, and by file and offset in every other
mode. By file it leaves the GTIDs of its position as they were. So a start by these GTIDs after that
would repeat what was read since, and leave rows out: it skips as many events of the first
transaction that comes as the position says of another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collector.watch.kept import Ask, Offset, literal, whole
from databases.base.errors import DatabaseRefused

_WAY = (
    "SET GLOBAL gtid_mode = ON_PERMISSIVE and binlogd collector restart read on by file; "
    "binlogd collector reset begins at the source's present, by GTIDs"
)
_FIRST = 5
"""Of a file's events: its format, the GTIDs before it, and that of its first transaction. A change
of the mode begins another file."""


def is_by_file(offset: Offset, variables: Mapping[str, str]) -> bool:
    """Whether transactions are read without their GTIDs: they have none in this mode, or Debezium's
    name for the last one says so."""
    without = variables.get("gtid_mode") in ("OFF", "OFF_PERMISSIVE")
    return without or str(offset.get("transaction_id") or "").startswith("file=")


def unfit(ask: Ask, sets: str, by_file: bool, file: str, files: Sequence[str]) -> str:
    """Why Debezium can't go on by its GTIDs, or nothing. ``file``: of the position, empty where
    it is another server's; ``files``: the log's, the oldest first. Raises DatabaseAway."""
    if by_file:
        return (
            "it was read by file, and gtid_mode is ON now: by the GTIDs of its position Debezium "
            f"would repeat transactions, or leave rows out. {_WAY}"
        )
    if file not in files:
        return ""
    for name in files[files.index(file) :]:
        before, anonymous = _begin(ask, name)
        if anonymous:
            return (
                f"the binary log {name} has transactions without GTIDs, and gtid_mode is ON: "
                f"Debezium can't read them by GTIDs, or leaves them out. {_WAY}"
            )
        if name == file and before and not _is_subset(ask, before, sets):
            return (
                f"its position is in {name}, and its GTIDs lack some of those before that file: it "
                f"was read by file meanwhile. {_WAY}"
            )
    return ""


def _begin(ask: Ask, name: str) -> tuple[str, bool]:
    """The GTIDs before a file, and whether it begins with a transaction that has none."""
    try:
        rows = ask(f"SHOW BINLOG EVENTS IN {literal(name)} LIMIT {_FIRST}")
    except DatabaseRefused:
        return "", False  # the file went meanwhile, or a right lacks: the reader's error says it
    said = {str(row[2]): str(row[5]) for row in rows}
    return "".join(said.get("Previous_gtids", "").split()), "Anonymous_Gtid" in said


def _is_subset(ask: Ask, part: str, whole_set: str) -> bool:
    ((held,),) = ask(f"SELECT GTID_SUBSET({literal(part)}, {literal(whole_set)})")
    return bool(whole(held))

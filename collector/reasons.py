"""What a failed connector's reason means, and what leads out. Pure."""

from __future__ import annotations

import re

_LOST = re.compile(
    r"no longer available on the server|purged (?:required )?binary log|purged binary logs|"
    r"could not find (?:the )?(?:first|next) log|Cannot seek to the last known offset|"
    r"requested WAL segment .* has already been removed|can no longer get changes from replication"
    r"|slot .* (?:has been|was) invalidated|impossible position|"
    r"GTID .* which .* not in the master's binlog|connecting slave requested to start from GTID",
    re.I,
)
_HINTS = (
    (
        r"same server_uuid/server_id|server[_ ]id .* (?:already|in use)",
        "another reader of the server has this collector's server_id: another binlogd with a "
        "collector of this topic, or a replica; stop it, or give this one a number of its own by "
        "[collector.NAME] server_id",
    ),
    (
        r"replication slot .* is active|slot .* in use",
        "another reader has this collector's slot: stop it, or give this one another by "
        "[collector.NAME] slot",
    ),
    (
        r"must be owner of|permission denied (?:for database|to create publication)|"
        r"must be superuser to create",
        "let an administrator make the publication, and name it by [database.NAME] publication",
    ),
    (
        r"Access denied|password authentication failed|authentication failed|Failed authentication",
        "the password or a right is not taken: it is read again from its file or credential",
    ),
    (
        r"Exactly-once support .* not|exactly\.once\.source\.support|does not support exactly-once",
        "the Connect cluster must have exactly.once.source.support=enabled",
    ),
    (
        r"which is larger than \d+, which is the value of the max\.request\.size|"
        r"RecordTooLargeException",
        "a record, with its row before and after, has 64 MiB at most: leave its table out by "
        "[collector.NAME] tables, or begin behind it by binlogd collector reset NAME, which has "
        "the tables loaded",
    ),
    (
        r"internal schema size \d+, but row size \d+",
        "Debezium has other columns of this table than its log: often those of a former table of "
        "that name, renamed away by ALTER TABLE before a restart, whose CREATE TABLE it passed "
        "over; or a session's binlog_row_image is not FULL. binlogd collector reset NAME begins at "
        "the source's present, and has the tables loaded",
    ),
    (
        r"schema isn't known to this connector|SchemaHistoryException|db history topic|"
        r"database schema history",
        "the topic of the schema history is not whole: binlogd collector reset NAME begins at the "
        "source's present, and has the tables loaded",
    ),
)


def lost_in(trace: str) -> str:
    """The line of a failed task's reason that says that its position is gone; empty: none does."""
    found = _LOST.search(trace)
    if found is None:
        return ""
    start, end = trace.rfind("\n", 0, found.start()) + 1, trace.find("\n", found.end())
    line = " ".join(trace[start : None if end < 0 else end].split())
    return line.rpartition("Exception: ")[2][:500]


def hint(trace: str, name: str) -> str:
    """What leads out of it, empty where it is not known."""
    found = (said for pattern, said in _HINTS if re.search(pattern, trace, re.I))
    return next(found, "").replace("NAME", name)

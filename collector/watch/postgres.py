"""The replication slot of PostgreSQL, beside a position of Debezium's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from collector.watch.kept import Ask, KeptLog, Offset, whole
from databases.base.errors import DatabaseAway, DatabaseRefused

_TIMELINE = """
CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
_SLOT = """
SELECT to_jsonb(s)::text, s.confirmed_flush_lsn - '0/0'::pg_lsn,
(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END)
- '0/0'::pg_lsn, current_database(), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
{timeline}
FROM (SELECT 1) one LEFT JOIN pg_replication_slots s ON s.slot_name = '{slot}'"""
_READER = """
SELECT application_name, client_addr::text FROM pg_stat_activity WHERE pid = {pid}"""


def look(
    ask: Ask,
    slot: str,
    offset: Callable[[], Offset | None],
    known: str,
    history: Callable[[int], str],
) -> KeptLog:
    """``offset`` is read after the slot: a slot never moves past a position that is stored.
    ``known``: the identity when the position was looked at before, or empty. ``history``: the
    server's file of a timeline's promotions.

    Raises DatabaseAway, also of a standby; DatabaseRefused.
    """
    ((text, confirmed, end, database, now_us, timeline),) = ask(
        _SLOT.format(slot=slot, timeline=_TIMELINE)
    )
    if timeline is None:
        raise DatabaseAway("a standby answers, which no collector reads: its primary must answer")
    there: dict[str, Any] | None = None if text is None else json.loads(str(text))
    position = offset()
    identity = identity_of(ask, timeline)
    if there is None:
        gone = f"the slot {slot} is not there any more" if position else ""
        return KeptLog(lost=gone, identity=identity, end=str(end))
    lost = _lost(slot, there, whole(confirmed), position, database)
    if not lost and known and identity and known != identity:
        lost = _lost_server(identity, known, max(_places(position), default=0), history)
    seen = max(_places(position), default=whole(confirmed) or 0)
    beyond = max(0, (whole(end) or 0) - seen)
    stamp = None if position is None else whole(position.get("ts_usec"))
    age = None if not stamp else (int(str(now_us)) - stamp) / 1e6
    return KeptLog(
        bytes=None if position is None else beyond,
        seconds=age if beyond else 0.0,
        room_bytes=whole(there.get("safe_wal_size")),
        lost=lost,
        identity=identity,
        end=str(end),
        taken=_reader(ask, there),
    )


def _places(offset: Offset | None) -> list[int]:
    names = ("lsn", "lsn_proc", "lsn_commit")
    found = [whole((offset or {}).get(name)) for name in names]
    return [place for place in found if place is not None]


def _lost(
    slot: str, there: dict[str, Any], confirmed: int | None, offset: Offset | None, database: object
) -> str:
    if there.get("database") != database or there.get("plugin") != "pgoutput":
        return f"the slot {slot} is another one's: of {there.get('plugin')} in {there['database']}"
    if there.get("wal_status") == "lost" or there.get("invalidation_reason"):
        why = there.get("invalidation_reason") or "max_slot_wal_keep_size"
        return f"the server has invalidated the slot {slot}: {why}"
    places = _places(offset)
    if confirmed is not None and places and confirmed > max(places):
        return (
            f"the slot {slot} is ahead of the position that was read: it was recreated, or moved "
            "by somebody"
        )
    return ""


def _lost_server(now: str, known: str, place: int, history: Callable[[int], str]) -> str:
    """Why a position of the server that it was is none of the one that it is, or nothing."""
    system, _, timeline = now.partition("/")
    before, _, former = known.partition("/")
    if system != before:
        return f"it is another cluster now (system {system}, before {before})"
    if not (timeline and former):
        return ""
    try:
        ends = dict(_ends(history(int(timeline))))
    except DatabaseRefused as error:
        return (
            f"it was promoted (timeline {timeline}, before {former}), where is not known: {error}"
        )
    end = ends.get(int(former))
    if end is None or end < place:
        return (
            f"it was promoted (timeline {timeline}, before {former}) without the last of what was "
            "read: it has another history"
        )
    return ""


def _ends(history: str) -> Iterator[tuple[int, int]]:
    """Where each timeline ended that led to this one."""
    for line in history.splitlines():
        if found := re.match(r"(\d+)\s+([0-9A-F]+)/([0-9A-F]+)", line.strip()):
            yield int(found[1]), (int(found[2], 16) << 32) + int(found[3], 16)


def identity_now(ask: Ask) -> str:
    """See ``identity_of``. Raises DatabaseAway, DatabaseRefused."""
    ((timeline,),) = ask(f"SELECT {_TIMELINE}")
    return identity_of(ask, timeline)


def identity_of(ask: Ask, timeline: object) -> str:
    """Which cluster it is and which timeline of it: each promotion begins another. ``timeline``: as
    the files of its log begin, None of a standby. Empty where the cluster is unknown. Raises
    DatabaseAway."""
    try:
        ((system,),) = ask("SELECT system_identifier FROM pg_control_system()")
    except DatabaseRefused:
        return ""  # this user may not read it, or this kind of server has none
    return str(system) if timeline is None else f"{system}/{int(str(timeline), 16)}"


def _reader(ask: Ask, there: dict[str, Any]) -> str:
    """Who reads by the slot now."""
    pid = there.get("active_pid")
    if not there.get("active") or pid is None:
        return ""
    rows = ask(_READER.format(pid=int(pid)))
    name, address = rows[0] if rows else (None, None)
    return f"PID {pid}, {name or 'without a name'} at {address or 'a local socket'}"

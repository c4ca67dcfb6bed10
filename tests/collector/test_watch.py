"""What a source keeps behind a position, and when the position is gone: by its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collector.memory import CollectorMemory
from collector.seen_log import remember
from collector.watch import mysql, postgres
from collector.watch.kept import KeptLog
from databases.base.errors import DatabaseAway

NOW = 1_000_000


def asked(**answers: object) -> Callable[[str], list[tuple[object, ...]]]:
    """Answers by a word of the question."""

    def ask(sql: str) -> list[tuple[object, ...]]:
        for word, rows in answers.items():
            if re.search(word.replace("_", ".*"), sql):
                return [*map(tuple, rows)]  # type: ignore[call-overload]
        return []

    return ask


def binlog(
    offset: dict[str, object],
    logs: Sequence[tuple[str, int]] = (("b.1", 100), ("b.2", 500), ("b.3", 50)),
    known: str = "",
    by_file: bool = False,
    first: tuple[tuple[str, str], ...] = (),
    **variables: str,
) -> KeptLog:
    """``first``: of each file, the first events' types and what they say."""
    said = {"server_uuid": "u-1", "server_id": "1", "binlog_expire_logs_seconds": "3600"}
    said |= variables
    ask = asked(
        VARIABLES=said.items(), BINARY=logs, gtid_executed=[(1, 1, "")], GTID_SUBSET=[(0,)],
        EVENTS=[(0, 0, kind, 0, 0, text) for kind, text in first],
        SYSDATE=[(NOW * 1_000_000,)],
    )  # fmt: skip
    return mysql.look(ask, {"ts_sec": NOW - 600, **offset}, known, by_file)


def test_what_is_behind_a_position_in_the_binary_log() -> None:
    """The rest of its file and all later ones; by age its file may go after the limit."""
    found = binlog({"file": "b.2", "pos": 400})
    assert (found.bytes, found.seconds, found.purge_s, found.lost) == (150, 600, 3000, "")


def test_a_clock_that_was_set_back() -> None:
    """The source's own, which also purges: an age below 0 is shown as it is, and the position stays
    for longer. This machine's clock is not asked."""
    found = binlog({"file": "b.2", "pos": 400, "ts_sec": NOW + 3600})
    assert (found.seconds, found.purge_s) == (-3600, 7200)
    assert slot({}, 400, {"lsn": 600, "ts_usec": (NOW + 5) * 1_000_000}).seconds == -5


def test_the_last_file_is_never_removed() -> None:
    """However old the position is."""
    found = binlog({"file": "b.3", "pos": 50, "ts_sec": 1})
    assert (found.bytes, found.seconds, found.purge_s) == (0, 0, None)


@pytest.mark.parametrize(
    ("offset", "known", "said"),
    [
        ({"file": "b.0", "pos": 4}, "", "b.0 is not there any more; the oldest is b.1"),
        ({"file": "b.1", "pos": 400}, "", "ends at 100, before the position 400"),
        ({"file": "b.2", "pos": 4}, "u-0", "another server now"),
    ],
)
def test_a_position_without_gtids_is_lost(offset: dict[str, object], known: str, said: str) -> None:
    """A file that went, a file that is shorter, another server's file of the same name."""
    assert said in binlog(offset, known=known).lost
    assert not binlog({"file": "b.2", "pos": 4}, known="u-1").lost


@pytest.mark.parametrize(
    ("mode", "by_file", "transaction", "first", "said"),
    [
        ("ON", False, "u-1:5", ("Gtid", ""), ""),
        ("ON", False, "file=b.2,pos=4", ("Gtid", ""), "it was read by file, "),
        ("ON", True, "u-1:5", ("Gtid", ""), "it was read by file, "),
        ("ON", False, "u-1:5", ("Anonymous_Gtid", ""), "b.2 has transactions without GTIDs"),
        ("ON", False, "u-1:5", ("Previous_gtids", "u-1:1-9"), "its GTIDs lack some"),
        ("ON_PERMISSIVE", True, "u-1:5", ("Anonymous_Gtid", ""), ""),
        ("OFF", False, "u-1:5", ("Anonymous_Gtid", ""), ""),
    ],
)
def test_a_mode_of_gtids_that_changed(
    mode: str, by_file: bool, transaction: str, first: tuple[str, str], said: str
) -> None:
    """By GTIDs alone a start would repeat, or leave out, what was read by file."""
    offset: dict[str, object] = {
        "file": "b.2", "pos": 4, "gtids": "u-1:1-4", "transaction_id": transaction, "server_id": 1
    }  # fmt: skip
    found = binlog(offset, by_file=by_file, first=(first,), gtid_mode=mode)
    assert said in found.lost
    assert bool(found.lost) == bool(said)
    away = binlog(offset | {"server_id": 2}, by_file=by_file, first=(first,), gtid_mode=mode)
    assert bool(away.lost) == ("it was read by file, " in said)
    assert found.by_file == (by_file or transaction.startswith("file=") or mode == "OFF")


def test_mariadb_bounds_by_size_and_without_automatic_purge_nothing_ends() -> None:
    found = binlog({"file": "b.2", "pos": 500}, max_binlog_total_size="1000")
    assert found.room_bytes == 450
    off = binlog({"file": "b.2", "pos": 500}, binlog_expire_logs_auto_purge="OFF")
    assert off.purge_s is None


@pytest.mark.parametrize(
    ("state", "first", "said"),
    [
        ("0-1-50", "0-1-10", ""),
        ("0-1-19", "0-1-10", "it has another history"),
        ("1-1-50", "0-1-10", "it has another history"),
        ("0-1-50", "0-1-30", "what is between is purged"),
    ],
)
def test_mariadbs_place_is_told_by_its_gtids(state: str, first: str, said: str) -> None:
    """Its files may be another server's."""
    ask = asked(
        VARIABLES=[("server_id", "1")], BINARY=[("x.7", 10)], gtid_binlog_state=[(state,)],
        EVENTS=[(0, 0, "Format_desc", 0, 0, ""), (0, 0, "Gtid_list", 0, 0, f"[{first}]")],
    )  # fmt: skip
    found = mysql.look(ask, {"file": "b.2", "pos": 4, "gtids": "0-1-20"}, "", False)
    assert (said in found.lost) == bool(said or not found.lost)
    assert bool(found.lost) == bool(said)


def slot(
    there: dict[str, object] | None,
    confirmed: int,
    offset: dict[str, object] | None,
    known: str = "7",
    timeline: str | None = "00000001",
    history: str = "",
) -> KeptLog:
    whole = (
        None
        if there is None
        else json.dumps({"database": "d", "plugin": "pgoutput", "wal_status": "reserved"} | there)
    )
    ask = asked(
        pg_replication_slots=[(whole, confirmed, 1000, "d", NOW * 1_000_000, timeline)],
        control_system=[("7",)], pg_stat_activity=[("theirs", "10.0.0.1")],
    )  # fmt: skip
    return postgres.look(ask, "s", lambda: offset, known, lambda _: history)


def test_what_is_behind_a_slots_position() -> None:
    """Room until it is invalidated comes from the server."""
    found = slot({"safe_wal_size": 77}, 400, {"lsn": 600, "ts_usec": (NOW - 5) * 1_000_000})
    assert (found.bytes, found.seconds, found.room_bytes, found.lost) == (400, 5, 77, "")


@pytest.mark.parametrize(
    ("there", "confirmed", "offset", "said"),
    [
        (None, 0, {"lsn": 1}, "not there any more"),
        ({"wal_status": "lost"}, 1, {"lsn": 1}, "has invalidated"),
        ({"invalidation_reason": "idle_timeout"}, 1, {"lsn": 1}, "idle_timeout"),
        ({}, 700, {"lsn": 600, "lsn_proc": 650}, "is ahead of the position"),
        ({"database": "other"}, 1, {"lsn": 1}, "is another one's"),
        (None, 0, None, ""),
        ({}, 650, {"lsn": 600, "lsn_proc": 650}, ""),
    ],
)
def test_a_slots_position_is_lost(
    there: dict[str, object] | None, confirmed: int, offset: dict[str, object] | None, said: str
) -> None:
    """By name; a collector that has not begun yet has lost nothing."""
    found = slot(there, confirmed, offset).lost
    assert said in found
    assert bool(found) == bool(said)


HISTORY = "1\t0/1000\tno recovery target specified\n\n2\t0/2000\tno recovery target specified\n"


@pytest.mark.parametrize(
    ("known", "timeline", "place", "said"),
    [
        ("7/1", "00000003", 0x1000, ""),
        ("7/1", "00000003", 0x1001, "was promoted (timeline 3, before 1) without the last"),
        ("7/2", "00000003", 0x2000, ""),
        ("7/4", "00000003", 0x10, "was promoted (timeline 3, before 4) without the last"),
        ("7", "00000003", 0x3000, ""),
        ("7/1", "00000001", 0x3000, ""),
        ("8/1", "00000001", 0x10, "another cluster now (system 7, before 8)"),
    ],
)
def test_a_server_that_was_promoted(known: str, timeline: str, place: int, said: str) -> None:
    """By the file of its promotions: a position beyond the end of its own timeline is lost."""
    found = slot({}, 1, {"lsn": place}, known, timeline, HISTORY)
    assert said in found.lost
    assert bool(found.lost) == bool(said)
    assert found.identity == f"7/{int(timeline, 16)}"


def test_a_standby_is_waited_for() -> None:
    """Its slots tell nothing of its primary's."""
    with pytest.raises(DatabaseAway, match="a standby answers"):
        slot(None, 0, {"lsn": 1}, "7/1", None)


def test_who_reads_by_the_slot_is_named() -> None:
    found = slot({"active": True, "active_pid": 42}, 1, {"lsn": 1})
    assert found.taken == "PID 42, theirs at 10.0.0.1"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("binlog_format", "MIXED"),
        ("binlog_row_image", "NOBLOB"),
        ("binlog_row_value_options", "PARTIAL_JSON"),
    ],
)
def test_a_setting_that_leaves_changes_out(setting: str, value: str) -> None:
    """It is said with its statement."""
    said = binlog({"file": "b.2", "pos": 4}, **{setting: value}).unread
    assert said.startswith(f"{setting} is {value}: ")
    assert f"SET GLOBAL {setting} = '" in said
    assert not binlog({"file": "b.2", "pos": 4}, binlog_format="ROW").unread


def test_a_log_that_was_reset() -> None:
    """Its files are counted from 1 again; another server's tell nothing."""
    offset: dict[str, object] = {"file": "b.4", "pos": 4, "gtids": "u-1:1-4", "server_id": 1}
    assert "it was reset" in binlog(offset, gtid_mode="ON").lost
    assert not binlog(offset | {"server_id": 2}, gtid_mode="ON").lost


def test_xa_transactions_that_were_rolled_back(tmp_path: Path) -> None:
    """Each is news to one who looked before, also behind a restart of the server."""
    memory = CollectorMemory(tmp_path, "shop")
    memory.load()
    for count, news in ((2, False), (2, False), (3, True), (0, False), (1, True)):
        memory.note(doubt="")
        assert not remember(memory, KeptLog(xa_rollbacks=count))
        assert bool(memory.now.doubt) == news

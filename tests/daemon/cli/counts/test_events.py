"""What is a change, and what is none."""

from __future__ import annotations

from daemon.cli.counts.tally import NO_NAME, NO_TIME
from tests.daemon.cli.counts.debezium_log import DebeziumLog, cells, why


def framed() -> DebeziumLog:
    return DebeziumLog().framed()


def test_a_changed_key_is_one_update_and_two_events() -> None:
    """It comes as a delete and an insert, which name each other."""
    log = framed().at(0)
    log.begin("7")
    log.row("7", 1, op="D", headers=(("__debezium.newkey", b"{}"),))
    log.put(None)
    log.row("7", 2, op="I", headers=(("__debezium.oldkey", b"{}"),))
    log.end("7", {"shop.t": 2})
    assert log.passed().report().verdict == "agrees"
    assert cells(log.scan()) == {0: (0, 1, 0, 1)}


def test_truncations_and_statements_are_no_changes() -> None:
    """MariaDB's have a BEGIN and no END; PostgreSQL's are among the END's numbers."""
    log = framed().at(0)
    log.begin("6")
    log.row("6", 1, op="T")
    log.begin("7")
    log.row("7", 1, op="I")
    log.row("7", 2, op="T")
    log.end("7", {"shop.t": 2})
    assert log.passed().report().verdict == "agrees"
    assert cells(log.scan()) == {0: (1, 0, 0, 1)}


def test_rows_of_a_snapshot_are_in_no_minute() -> None:
    log = framed().at(0)
    log.row(None, 0, op="R", snapshot="true")
    log.row(None, 0, op="R", snapshot="incremental")
    found = log.passed().report()
    assert (found.verdict, found.read, cells(log.scan())) == ("agrees", 2, {})


def test_changes_without_a_transaction_or_a_time_are_told() -> None:
    log = framed().at(0)
    log.row(None, 0)
    assert why(log.passed()) == ("not told", NO_NAME)
    assert cells(log.scan()) == {0: (1, 0, 0, None)}
    log = framed().at(0)
    log.row("7", 1, ts_ms=0)
    assert why(log.passed()) == ("not told", NO_TIME)


def test_a_record_that_cant_be_read_is_told_by_its_place() -> None:
    """It may be of any table; what follows it is counted."""
    log = framed().at(0)
    damaged = log.put(b'{"op": "c", "source": {')
    log.transaction("7", "I")
    found = log.passed().report()
    assert found.verdict == "not told"
    assert found.why[0].startswith("a record can't be read: ")
    assert f" at shop:0:{damaged}" in found.why[0]
    assert cells(log.scan()) == {0: (1, 0, 0, 1)}


def test_what_is_wrong_with_other_tables_is_nobodys_concern() -> None:
    """A transaction of tables that no route takes, which was restarted and lacks a change."""
    log = framed().at(0)
    for _ in range(2):
        log.begin("6")
    log.row("6", 1, "other.x")
    log.end("6", {"other.x": 2})
    log.transaction("7", "I")
    assert log.passed().report().verdict == "agrees"


def test_a_change_that_is_lost_counts_where_its_transaction_may_have_had_it() -> None:
    """The transaction began in the range; what is there of it, and its END, came later."""
    log = framed().at(2)
    log.begin("7")
    log.at(3).row("7", 2)
    log.end("7", {"shop.t": 2})
    assert log.passed().report().verdict == "differs"
    assert cells(log.scan()) == {2: (0, 0, 0, 1)}

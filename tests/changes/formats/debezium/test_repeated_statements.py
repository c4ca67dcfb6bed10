"""A connector that starts again sends what it sent since it noted its place: a renaming that was
done must not be done once more."""

from __future__ import annotations

from typing import Any

import pytest

from actors.contract import messages as msg
from actors.fetcher.sorting import Sorted, Sorter
from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import mark_of
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from tests.changes.formats.debezium.messages import MYSQL, record

RENAME = "RENAME TABLE a TO b"
PARTITION = TopicPartition("s", 0)


def where(pos: int, file: str = "bin.000009", at: int = 1000, **more: Any) -> dict[str, Any]:
    """A place in the server's log."""
    source = {**MYSQL, "connector": "mariadb", "file": file, "pos": pos, "ts_ms": at}
    return {**source, "server_id": 2, "snapshot": None, "table": "a", **more}


def ddl(pos: int, sql: str = RENAME, wrapped: bool = False, **more: Any) -> bytes:
    """A statement at a place."""
    value = {"source": where(pos, **more), "databaseName": "shop", "ddl": sql, "tableChanges": []}
    return record({"schema": {"type": "struct"}, "payload": value} if wrapped else value)


def row(pos: int, wrapped: bool = False, **more: Any) -> bytes:
    """A row at a place."""
    value = {"before": None, "after": {"id": 1}, "source": where(pos, **more), "op": "c"}
    return record({"schema": {"type": "struct"}, "payload": value} if wrapped else value, {"id": 1})


def sorter(stops: bool = False, auto: bool = False, tables: str = "*") -> Sorter:
    """One of a pipeline that takes these tables."""
    format_ = AutoFormat(FormatOptions()) if auto else DebeziumJson(FormatOptions())
    route = Route((tables,), (), "lake.{database}.{table}", Mode.UPSERT, None)
    return Sorter(format_, Router([route]), ddl_not_understood_stops=stops)


def sort(logic: Sorter, *values: bytes, first: int = 0) -> Sorted:
    """What comes of messages that follow each other."""
    offsets = list(range(first, first + len(values)))
    return logic.sort(msg.Fetched(PARTITION, offsets, list(values), first + len(values)))


def followed(found: Sorted) -> list[int]:
    """The offsets of the statements that targets were told of."""
    return sorted(
        {offset for share in found.shares if share.ddl for offset in share.messages.offsets}
    )


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_statement_that_comes_again_is_done(auto: bool, wrapped: bool) -> None:
    """The connector's place was noted before it: nothing else came again."""
    values = [
        row(10, wrapped),
        ddl(20, wrapped=wrapped),
        ddl(20, wrapped=wrapped),
        row(30, wrapped),
    ]
    mark = mark_of("debezium-json") if auto else b""
    found = sort(sorter(auto=auto), *(mark + value for value in values))
    assert found.problem is None
    assert followed(found) == [1]
    assert not found.unread
    assert found.good == len(values)


def test_so_are_all_that_come_again_before_a_row() -> None:
    """Exchanged by three statements: done once more, the tables would have each other's rows."""
    three = [ddl(20, "RENAME TABLE a TO c"), ddl(21, "RENAME TABLE b TO a"),
             ddl(22, "RENAME TABLE c TO b")]  # fmt: skip
    found = sort(sorter(), row(10), *three, row(30), *three, row(30), ddl(40))
    assert followed(found) == [1, 2, 3, 9]
    assert not found.unread


@pytest.mark.parametrize(
    "sql",
    [RENAME, "ALTER TABLE a RENAME COLUMN c TO d", "ALTER TABLE a CHANGE c d INT",
     "ALTER TABLE a RENAME TO x.b, ADD COLUMN e INT"],
)  # fmt: skip
def test_a_renaming_behind_rows_that_came_again_is_told(sql: str) -> None:
    """They were stored under the later names, and nobody can tell what is whose."""
    before = [row(10), ddl(20, sql), row(30)]
    found = sort(sorter(), *before, row(10), ddl(20, sql), row(30))
    assert followed(found) == [1]
    assert "sent again" in "".join(found.unread)
    stopped = sort(sorter(stops=True), *before, row(10), ddl(20, sql))
    assert stopped.problem is not None
    assert stopped.problem.lasting
    assert stopped.good == 4
    assert sql in stopped.problem.reason


def test_nothing_is_said_of_a_table_that_is_not_routed() -> None:
    """Its statements concern nobody."""
    values = [row(10), ddl(20), row(10), ddl(20)]
    assert not sort(sorter(stops=True, tables="other.*"), *values).unread


@pytest.mark.parametrize(
    "sql", ["TRUNCATE TABLE a", "DROP TABLE a", "ALTER TABLE a ADD COLUMN c INT"]
)
def test_other_statements_behind_rows_are_done_again(sql: str) -> None:
    """They end where they ended before: a truncated table has lost the rows that came again."""
    assert followed(sort(sorter(), row(10), ddl(20, sql), row(10), ddl(20, sql))) == [1, 3]


def test_one_statement_may_be_several_records() -> None:
    """Debezium writes one for each table, all of one place."""
    both = [ddl(20, "RENAME TABLE a TO b"), ddl(20, "RENAME TABLE c TO d")]
    assert followed(sort(sorter(), *both, row(30), *both)) == [0, 1]
    same = [ddl(20, "DROP TABLE a, b", table="a"), ddl(20, "DROP TABLE a, b", table="b")]
    assert followed(sort(sorter(), *same)) == [0, 1]


@pytest.mark.parametrize(
    "later",
    [
        {"pos": 21},
        {"pos": 19},
        {"pos": 20, "db": "other"},
        {"pos": 4, "file": "bin.000010"},
        {"pos": 4, "file": "bin.1000000"},
        {"pos": 20, "at": 2000},
        {"pos": 4, "file": "bin.000001", "at": 2000},
        {"pos": 4, "server_id": 3},
        {"pos": 4, "name": "another"},
        {"pos": 4, "file": "log.000001"},
        {"pos": 20, "sql": "RENAME TABLE b TO a"},
        {"pos": None},
        {"pos": 20, "file": None},
        {"pos": 20, "connector": "ticdc"},
    ],
    ids=str,
)
def test_what_is_no_repetition(later: dict[str, Any]) -> None:
    """Any other place, time, server or table, also of a place before it: two connectors may have
    one name by mistake."""
    assert followed(sort(sorter(), row(10), ddl(20), ddl(**later))) == [1, 2]


def test_what_is_read_again_from_the_topic_is_no_repetition() -> None:
    """A write that was given up: the statement may not have been done."""
    logic = sorter()
    assert followed(sort(logic, row(10), ddl(20))) == [1]
    assert followed(sort(logic, ddl(20), row(30), first=1)) == [1]
    assert followed(sort(logic, ddl(20), first=3)) == []


def test_partitions_are_apart() -> None:
    """Each has a connector's records in an order of its own."""
    logic = sorter()
    sort(logic, row(10), ddl(20))
    other = msg.Fetched(TopicPartition("s", 1), [7], [ddl(20)], 8)
    assert followed(logic.sort(other)) == [7]


def test_the_snapshot_s_statements_tell_no_place() -> None:
    """All are at the place where the stream begins."""
    first = [ddl(20, "CREATE TABLE a (id INT)", snapshot="first"), ddl(20, snapshot="true")]
    assert followed(sort(sorter(), *first, ddl(20))) == [0, 2]


def test_memory_is_of_a_batch_before_too() -> None:
    """A connector takes seconds to start."""
    logic = sorter()
    sort(logic, row(10), ddl(20))
    assert followed(sort(logic, ddl(20), first=2)) == []
    sort(logic, row(30), first=3)
    sort(logic, row(10), first=4)
    assert sort(logic, ddl(20), first=5).unread

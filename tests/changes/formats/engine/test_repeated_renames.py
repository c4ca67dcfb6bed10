"""Maxwell or Canal that begins again sends what it sent since it noted its place: a renaming that
was done must not be done once more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.contract import messages as msg
from actors.fetcher.sorting import Sorted, Sorter
from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import Format, pack
from changes.formats.maxwell.json import MaxwellJson
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition

PARTITION = TopicPartition("s", 0)
RENAME = "RENAME TABLE a TO b"


def maxwell(sql: str = RENAME, ts: int = 1000, new: str = "b", **_: Any) -> bytes:
    def table(name: str) -> dict[str, Any]:
        return {"database": "shop", "table": name, "columns": [], "primary-key": ["id"]}

    value = {"type": "table-alter", "database": "shop", "table": "a", "old": table("a"),
             "def": table(new), "ts": ts, "sql": sql}  # fmt: skip
    return json.dumps(value).encode()


def canal(sql: str = RENAME, ts: int = 1000, sent: int = 1, **_: Any) -> bytes:
    value = {"data": None, "database": "shop", "es": ts, "id": sent, "isDdl": True, "sql": sql,
             "table": "a", "ts": ts + sent, "type": "RENAME"}  # fmt: skip
    return json.dumps(value).encode()


MAKERS = {"maxwell-json": maxwell, "canal-json": canal}
FORMATS = {"maxwell-json": MaxwellJson, "canal-json": CanalJson}


@pytest.fixture(params=MAKERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def sorter(name: str, stops: bool = False) -> Sorter:
    format_: Format = FORMATS[name](FormatOptions())
    route = Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)
    return Sorter(format_, Router([route]), ddl_not_understood_stops=stops)


def sort(logic: Sorter, name: str, *values: bytes, first: int = 0) -> Sorted:
    records = [pack(None, each, ()) if name == "maxwell-json" else each for each in values]
    offsets = list(range(first, first + len(values)))
    return logic.sort(msg.Fetched(PARTITION, offsets, records, first + len(values)))


def followed(found: Sorted) -> list[int]:
    return sorted(
        {offset for share in found.shares if share.ddl for offset in share.messages.offsets}
    )


def test_a_renaming_that_comes_again_is_told(name: str) -> None:
    """In the same batch, or a later one."""
    make, logic = MAKERS[name], sorter(name)
    found = sort(logic, name, make(sent=1), make(sent=2))
    assert followed(found) == [0]
    assert [each for each in found.unread if "sent it twice" in str(each)]
    assert followed(sort(logic, name, make(sent=3), first=2)) == []


def test_a_pipeline_may_stop_there(name: str) -> None:
    make = MAKERS[name]
    found = sort(sorter(name, stops=True), name, make(), make(sent=2))
    assert found.good == 1
    assert found.problem is not None
    assert "sent it twice" in found.problem.reason


@pytest.mark.parametrize(
    "later",
    [{"ts": 2000}, {"sql": "RENAME TABLE a TO c", "new": "c"}],
    ids=["another time", "another statement"],
)
def test_what_is_no_repetition(name: str, later: dict[str, Any]) -> None:
    make = MAKERS[name]
    assert followed(sort(sorter(name), name, make(), make(**later))) == [0, 1]


def test_what_names_nothing_anew_may_come_twice(name: str) -> None:
    """It ends where it ended before."""
    statement = MAKERS[name]("ALTER TABLE a ADD COLUMN n INT", new="a")
    assert followed(sort(sorter(name), name, statement, statement)) == [0, 1]


def test_without_a_time_it_may_be_another() -> None:
    """Not all who write Canal's JSON tell one."""
    statement = canal(ts=0)
    assert followed(sort(sorter("canal-json"), "canal-json", statement, statement)) == [0, 1]


def test_what_is_read_again_from_the_topic_is_no_repetition(name: str) -> None:
    """A write that was given up: the statement may not have been done."""
    make, logic = MAKERS[name], sorter(name)
    assert followed(sort(logic, name, make())) == [0]
    assert followed(sort(logic, name, make())) == [0]


def test_partitions_are_apart(name: str) -> None:
    make, logic = MAKERS[name], sorter(name)
    sort(logic, name, make())
    record = pack(None, make(), ()) if name == "maxwell-json" else make()
    other = msg.Fetched(TopicPartition("s", 1), [7], [record], 8)
    assert followed(logic.sort(other)) == [7]

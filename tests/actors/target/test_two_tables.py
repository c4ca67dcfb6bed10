"""Two tables whose names lead to one target: no write holds rows of both, so the sink can tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actors.contract import messages as msg
from actors.contract.multi_entry import entry_groups
from actors.fetcher.sorting import Sorter
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode, TableName
from changes.routes.routing import Route, Router
from offsets.recovery import Watermarks
from tests.actors.target.processor_rig import S0, ProcessorRig, canal
from tests.changes.formats import protobuf_records as wire

TEMPLATE = "lake.x.{database}_{table}"
ROUTES = (Route(("*",), (), TEMPLATE, Mode.UPSERT),)
TARGET = "lake.x.a_b_c"
FIRST, SECOND = TableName("a", "b_c"), TableName("a_b", "c")


def row(table: TableName, key: int, name: str = "n") -> bytes:
    return canal(table.table, key, name, database=table.database)


def ddl(table: TableName, sql: str) -> bytes:
    body = {"database": table.database, "table": table.table, "type": "QUERY", "isDdl": True}
    return json.dumps(body | {"sql": sql}).encode()


def sort(values: Sequence[bytes], routes: Sequence[Route] = ROUTES, first: int = 0) -> Any:
    sorter = Sorter(
        FORMATS["canal-json"](FormatOptions()), Router(routes), ddl_not_understood_stops=False
    )
    offsets = list(range(first, first + len(values)))
    return sorter.sort(msg.Fetched(S0, offsets, list(values), first + len(values)))


def feed(rig: ProcessorRig, first: int, *values: bytes) -> None:
    """Messages as the fetcher hands them on."""
    rig.log.update(enumerate(values, first))
    shares = sort(values, rig.routes, first).shares
    size = sum(share.messages.size for share in shares)
    log = Watermarks(0, first + len(values))
    rig.feed(msg.RecordBatch(rig.epoch, S0, tuple(shares), size, log, rig.begins))


def rig_of(folder: Path, **settings: Any) -> ProcessorRig:
    return ProcessorRig(folder, routes=ROUTES, **settings)


def test_rows_of_each_table_are_a_share_of_their_own() -> None:
    """In the order of the log; where tables are meant to be merged they are not told apart."""
    values = [row(FIRST, 1), row(FIRST, 2), row(SECOND, 1), row(FIRST, 3)]
    shares = sort(values).shares
    assert [(share.table, share.messages.offsets) for share in shares] == [
        (FIRST, [0, 1]), (SECOND, [2]), (FIRST, [3]),
    ]  # fmt: skip
    (merged,) = sort(values, (Route(("*",), (), "lake.x.all", Mode.UPSERT),)).shares
    assert (merged.table, merged.messages.offsets) == (None, [0, 1, 2, 3])


def test_a_write_is_of_one_table(tmp_path: Path) -> None:
    """The first one's rows are written, the second one's refused; nothing counts as done."""
    rig = rig_of(tmp_path)
    feed(rig, 0, row(FIRST, 1, "a"), row(FIRST, 2, "b"), row(SECOND, 1, "X"), row(FIRST, 3))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "a.b_c and a_b.c" in failed.reason
    assert rig.rows[TARGET] == {(1,): "a", (2,): "b"}
    assert rig.done(TARGET) == 1


def test_pieces_behind_a_write_are_of_one_table_each(tmp_path: Path) -> None:
    """What is staged while a write flies is told apart too."""
    rig = rig_of(tmp_path, buffer_bytes=1)
    feed(rig, 0, row(FIRST, 1, "a"))
    rig.tick()
    rig.write()  # it is opened
    rig.tick()
    feed(rig, 1, row(FIRST, 2, "b"), row(SECOND, 1, "X"))
    rig.settle()
    assert len(rig.heard(msg.PipelineFailed)) == 1
    assert rig.rows[TARGET] == {(1,): "a", (2,): "b"}
    assert rig.done(TARGET) == 1


def test_a_statement_is_of_its_table(tmp_path: Path) -> None:
    """TRUNCATE of the second does not empty the first's."""
    rig = rig_of(tmp_path)
    feed(rig, 0, row(FIRST, 1, "a"), ddl(SECOND, "TRUNCATE TABLE c"))
    rig.settle()
    assert len(rig.heard(msg.PipelineFailed)) == 1
    assert rig.rows[TARGET] == {(1,): "a"}


def test_a_renaming_hands_the_target_on(tmp_path: Path) -> None:
    """The second table is the first one, renamed."""
    rig = rig_of(tmp_path)
    rename = ddl(FIRST, "RENAME TABLE a.b_c TO a_b.c")
    feed(rig, 0, row(FIRST, 1, "a"), rename, row(SECOND, 2, "b"))
    rig.settle()
    assert not rig.heard(msg.PipelineFailed)
    assert rig.rows[TARGET] == {(1,): "a", (2,): "b"}
    assert rig.owners[TARGET] == SECOND
    feed(rig, 3, row(FIRST, 3, "c"))
    rig.settle()
    assert len(rig.heard(msg.PipelineFailed)) == 1


def test_a_release_tells_them_apart_as_well(tmp_path: Path) -> None:
    """A spill may hold both; once a route takes but one, the other's rows are left out of it."""
    rig = rig_of(tmp_path, quarantine=True)
    feed(rig, 0, row(FIRST, 1, "a"))
    rig.settle()
    feed(rig, 1, row(SECOND, 1, "X"), row(FIRST, 2, "b"), row(SECOND, 2, "Y"))
    rig.settle()
    assert rig.listed[TARGET].lanes == {S0: (1, 3)}
    rig.feed(msg.RetryTarget(TARGET))
    rig.settle()
    assert (rig.rows[TARGET], TARGET in rig.listed) == ({(1,): "a"}, True)
    rig.routes = (Route(("*",), (str(SECOND),), TEMPLATE, Mode.UPSERT),)
    rig.start()
    rig.feed(msg.RetryTarget(TARGET))
    rig.settle()
    assert (rig.rows[TARGET], TARGET in rig.listed) == ({(1,): "a", (2,): "b"}, False)


def entries(*tables: TableName, statement: bytes = b"") -> bytes:
    """One message with a row of each table, and a statement behind the first one."""
    made = [
        wire.canal_rows(
            "INSERT",
            [wire.canal_row((), [wire.canal_column("id", str(key), "int(11)", key=True)])],
            table.table,
            table.database,
        )
        for key, table in enumerate(tables)
    ]
    return wire.canal_packet(*made[:1], *filter(None, [statement]), *made[1:])


def test_one_message_of_both() -> None:
    """Their rows can't be one message of the target: it is named, and nothing passes it over."""
    canal_packets = FORMATS["canal-protobuf"](FormatOptions())
    for routes, problem in (
        (ROUTES, True),
        ((Route(("*",), (), "lake.x.all", Mode.UPSERT),), False),
    ):
        sorter = Sorter(canal_packets, Router(routes), ddl_not_understood_stops=False)
        found = sorter.sort(msg.Fetched(S0, [5], [entries(FIRST, SECOND)], 6))
        assert (found.problem is not None and found.problem.lasting) is problem
        if found.problem is not None:
            assert "a.b_c and a_b.c both go to lake.x.a_b_c" in found.problem.reason
    sorter = Sorter(canal_packets, Router(ROUTES), ddl_not_understood_stops=False)
    (share,) = sorter.sort(msg.Fetched(S0, [5], [entries(FIRST, FIRST)], 6)).shares
    assert share.table == FIRST


def test_entry_groups_of_a_message_are_of_one_table_each() -> None:
    """Behind a statement the rows may be of another one."""
    canal_packets = FORMATS["canal-protobuf"](FormatOptions())
    router = Router(ROUTES)
    (route,) = router.targets(FIRST)
    truncate = wire.canal_ddl("TRUNCATE", "TRUNCATE TABLE b_c", FIRST.table, FIRST.database)
    value = entries(FIRST, FIRST, SECOND, SECOND, FIRST, statement=truncate)
    found = entry_groups(canal_packets, router, route, value)
    assert [(each.table, each.ddl, each.done) for each in found] == [
        (FIRST, False, 1), (None, True, 2), (FIRST, False, 3), (SECOND, False, 5),
        (FIRST, False, 6),
    ]  # fmt: skip

"""Tables that no lake can name so: left out by themselves, told once, counted."""

from __future__ import annotations

from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import Figures
from actors.fetcher.sorting import Sorter
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from tests.actors.fetcher.test_rule import ddl, failure, fetcher, message, offers, polled
from tests.actors.target.processor_rig import S0
from tests.changes.formats import protobuf_records as wire


def warnings(out: list[object]) -> list[dict[str, Any]]:
    return [
        dict(effect.fields)
        for effect in out
        if isinstance(effect, fx.Log) and effect.event == "table_left_out"
    ]


def figures(logic: Any) -> tuple[int, int, int]:
    (reply,) = logic.handle(Figures(), 0.0)
    return reply.value.left_out, reply.value.left_out_tables, reply.value.dropped


@pytest.mark.parametrize("name", ["../../evil", "..", "a/b", "x\ny"])
def test_one_warning_by_name_and_the_others_go_on(name: str) -> None:
    """Whatever number of messages there is of it, and a statement beside."""
    logic = fetcher(shards=1)
    sent = [message(name), message("t"), message(name), ddl(name, f"TRUNCATE TABLE `{name}`")]
    out = logic.handle(polled(*sent), 0.0)
    assert failure(out) is None
    (offer,) = offers(out)
    (share,) = offer.batch.shares
    assert (str(share.route.name), share.messages.offsets) == ("lake.s.t", [1])
    (warning,) = warnings(out)
    assert (warning["database"], warning["table"]) == ("s", name)
    assert "no table in the lake is named so" in warning["reason"]
    more = logic.handle(polled(message(name), first=4), 0.0)
    assert (warnings(more), offers(more)) == ([], [])
    assert figures(logic) == (4, 1, 0)


def test_a_table_that_another_route_takes_goes_there() -> None:
    """It is left out of the one target alone."""
    logic = fetcher(shards=1)
    logic._sorter._router = Router(  # the same, with a changelog of all tables beside
        [
            Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT),
            Route(("*",), (), "lake.log.all", Mode.APPEND),
        ]
    )
    out = logic.handle(polled(message("../x"), message("../x")), 0.0)
    (offer,) = offers(out)
    assert [(str(s.route.name), s.messages.offsets) for s in offer.batch.shares] == [
        ("lake.log.all", [0, 1])
    ]
    assert (len(warnings(out)), figures(logic)) == (1, (2, 1, 0))


def test_in_a_message_of_several_tables() -> None:
    """The other tables' rows go on."""

    def rows(table: str) -> bytes:
        column = wire.canal_column("id", "1", "int(11)", key=True)
        return wire.canal_rows("INSERT", [wire.canal_row((), [column])], table, "s")

    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
    format_ = FORMATS["canal-protobuf"](FormatOptions())
    sorter = Sorter(format_, router, ddl_not_understood_stops=False)
    value = wire.canal_packet(rows("../x"), rows("t"), rows("../x"))
    found = sorter.sort(msg.Fetched(S0, [5], [value], 6))
    assert [str(share.route.name) for share in found.shares] == ["lake.s.t"]
    assert [str(table) for table in found.left_out] == ["s.../x"]
    assert sorter.left_out.total() == 2

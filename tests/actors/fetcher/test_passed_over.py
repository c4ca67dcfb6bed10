"""Messages that may ask for a change, but not of which table: passed over, told and counted."""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import FetcherFigures, Figures
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats.debezium.json import DebeziumJson
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.changes.formats.debezium.messages import MYSQL, envelope, record

ONE, OTHER = TopicPartition("orders", 0), TopicPartition("items", 0)
LOG = Watermarks(0, 100)


def fetcher() -> FetcherLogic:
    """A fetcher of two topics with keys that have no schema."""
    routes = [Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)]
    format_ = DebeziumJson(FormatOptions())
    logic = FetcherLogic("p", format_, Router(routes), 1, FetcherSettings())
    logic.handle(msg.Assigned({ONE: 0, OTHER: 0}, {ONE: LOG, OTHER: LOG}), 0.0)
    return logic


def delete(table: str, number: int) -> bytes:
    value = envelope("d", None, {"id": number}, {**MYSQL, "table": table})
    return record(value, {"id": number})


def batch(source: TopicPartition, first: int, *values: bytes) -> msg.Fetched:
    return msg.Fetched(source, [*range(first, first + len(values))], [*values], first + len(values))


def test_tombstones_of_unknown_deletes_are_told() -> None:
    """Once for each reason and batch, with the place; what else the batch holds goes on."""
    logic = fetcher()
    ends = [record(None, {"id": number}) for number in (1, 2, 3)]
    first = batch(ONE, 0, ends[2], delete("orders", 1), ends[0], ends[1])
    out = logic.handle(msg.Polled((first, batch(OTHER, 7, ends[0]))), 0.0)
    logs = [effect for effect in out if isinstance(effect, fx.Log)]
    assert {log.event for log in logs} == {"messages_passed_over"}
    assert {log.level for log in logs} == {"warning"}
    told = [(log.fields["source"], log.fields["offset"], log.fields["messages"]) for log in logs]
    assert told == [("orders:0", 0, 2), ("items:0", 7, 1)]
    sent = [each.batch for each in out if isinstance(each, fx.Offer)]
    assert [[*share.messages.offsets] for each in sent for share in each.shares] == [[1]]
    tells = [each.message for each in out if isinstance(each, fx.Tell)]
    ends_at = {m.source: m.next_offset for m in tells if isinstance(m, msg.Dispatched)}
    assert ends_at == {ONE: 4, OTHER: 8}


def test_they_are_counted() -> None:
    """For the status and the metrics."""
    logic = fetcher()
    ends = [record(None, {"id": number}) for number in (1, 2)]
    logic.handle(msg.Polled((batch(ONE, 0, *ends, delete("orders", 1), ends[0]),)), 0.0)
    (reply,) = [e for e in logic.handle(Figures(), 0.0) if isinstance(e, fx.Reply)]
    assert isinstance(reply.value, FetcherFigures)
    assert (reply.value.passed_over, reply.value.dropped) == (2, 1)

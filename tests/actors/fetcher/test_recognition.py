"""The fetcher's rule for topics whose formats are told from their first messages."""

from __future__ import annotations

import json

import pytest

from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import FetcherFigures, Figures
from actors.fetcher.recognition import RecognitionBounds
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats import TopicFormats
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import mark_in, marked_name, pack, unpack
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from tests.changes.formats import protobuf_records as wire

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TOMBSTONE = pack(b'{"id":1}', None)
ROW = pack(None, json.dumps({"id": 1, "name": "x"}).encode())
COLUMNS = [wire.dts_column("id", "int(11)", key=True)]


def canal(key: int = 1) -> bytes:
    body = {"database": "s", "table": "t", "type": "INSERT", "isDdl": False}
    return pack(None, json.dumps(body | {"data": [{"id": str(key)}]}).encode())


def ogg(key: int = 1) -> bytes:
    body = {"table": "s.u", "op_type": "I", "pos": "1", "after": {"id": key}}
    return pack(None, json.dumps(body).encode())


def dts(key: int) -> list[bytes]:
    """A message in parts."""
    row = wire.dts_row((), [wire.dts_number(3, str(key))])
    parts = wire.dts_parts(20, wire.dts_rows(0, COLUMNS, [row]))
    return [pack(None, each, [("ps", b"%d" % n)]) for n, each in enumerate(parts, 1)]


def fetcher(
    known: dict[str, str] | None = None,
    until: dict[TopicPartition, int] | None = None,
    bounds: RecognitionBounds | None = None,
    **extra: str,
) -> FetcherLogic:
    format_ = AutoFormat(FormatOptions(extra=extra), TopicFormats(known))
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    settings = FetcherSettings(
        dead_letters=True, until=until, recognition=bounds or RecognitionBounds()
    )
    logic = FetcherLogic("p", format_, router, 1, settings)
    sources = (A0, A1, B0)
    logs = dict.fromkeys(sources, Watermarks(0, 100))
    logic.handle(msg.Assigned(dict.fromkeys(sources, 0), logs), 0.0)
    return logic


def fetched(source: TopicPartition, *values: bytes, first: int = 0) -> msg.Fetched:
    return msg.Fetched(source, list(range(first, first + len(values))), list(values),
                       first + len(values))  # fmt: skip


def told(out: list[object]) -> list[object]:
    """What the committer hears."""
    return [e.message for e in out if isinstance(e, fx.Tell) and e.to.role == "committer"]


def sent(out: list[object]) -> dict[TopicPartition, int]:
    return {m.source: m.next_offset for m in told(out) if isinstance(m, msg.Dispatched)}


def shares(logic: FetcherLogic, out: list[object]) -> list[tuple[str, list[int], str]]:
    """Each offered share's target, offsets, and the format that its records name."""
    found = []
    while offer := next((each for each in out if isinstance(each, fx.Offer)), None):
        for share in offer.batch.shares:
            (name,) = {marked_name(mark_in(value)) for value in share.messages.values}
            found.append((str(share.route.name), list(share.messages.offsets), name))
        out = logic.handle(msg.Offered(offer.to, offer.batch, True), 0.0)
    return found


def failure(out: list[object]) -> str:
    found = [e.message for e in out if isinstance(e, fx.Tell)]
    return next((m.reason for m in found if isinstance(m, msg.PipelineFailed)), "")


def test_topics_of_one_pipeline_may_differ() -> None:
    """Each is told by itself, before anything of it goes to anybody."""
    logic = fetcher()
    out = logic.handle(msg.Polled((fetched(A0, canal(1)), fetched(B0, ogg(1)))), 0.0)
    names = [m for m in told(out) if isinstance(m, msg.FormatDetected)]
    assert names == [msg.FormatDetected("a", "canal-json"), msg.FormatDetected("b", "ogg-json")]
    assert told(out).index(names[0]) < next(
        place for place, m in enumerate(told(out)) if isinstance(m, msg.Dispatched)
    )
    assert next(e for e in out if isinstance(e, fx.Log)) == fx.Log(
        "info", "format_told", {"topic": "a", "format": "canal-json"}
    )
    assert shares(logic, out) == [
        ("lake.s.t", [0], "canal-json"), ("lake.s.u", [0], "ogg-json")
    ]  # fmt: skip


def test_what_tells_nothing_waits_in_its_order() -> None:
    """Nothing is dispatched, so after a crash it is read again; other topics go on."""
    logic = fetcher()
    out = logic.handle(msg.Polled((fetched(A0, TOMBSTONE, TOMBSTONE), fetched(B0, ogg()))), 0.0)
    assert sent(out) == {B0: 1}
    assert shares(logic, out) == [("lake.s.u", [0], "ogg-json")]
    out = logic.handle(msg.Polled((fetched(A0, TOMBSTONE, canal(), first=2),)), 0.0)
    assert shares(logic, out) == [("lake.s.t", [3], "canal-json")]
    assert sent(out) == {A0: 4}


def test_a_partition_is_let_go_by_another_ones_message() -> None:
    """The format is the topic's."""
    logic = fetcher()
    logic.handle(msg.Polled((fetched(A0, TOMBSTONE),)), 0.0)
    out = logic.handle(msg.Polled((fetched(A1, canal()),)), 0.0)
    assert sent(out) == {A0: 1, A1: 1}


def test_the_position_stays_below_what_waits() -> None:
    """The consumer has passed it: were the frontier to follow, a crash would lose it."""
    logic = fetcher()
    logic.handle(msg.Polled((fetched(A0, TOMBSTONE),)), 0.0)
    assert sent(logic.handle(msg.Polled((), {A0: 1, B0: 7}), 0.0)) == {B0: 7}


def test_a_revoked_partition_takes_what_waits_along() -> None:
    """Another member has it; assigned again, it is read again, and not twice."""
    logic = fetcher()
    logic.handle(msg.Polled((fetched(A0, TOMBSTONE),)), 0.0)
    logic.handle(msg.Revoked((A0,)), 0.0)
    out = logic.handle(msg.Polled((fetched(A1, canal()),)), 0.0)
    assert sent(out) == {A1: 1}
    logic.handle(msg.Assigned({A0: 0}, {A0: Watermarks(0, 100)}), 0.0)
    out = logic.handle(msg.Polled((fetched(A0, canal(), canal()),)), 0.0)
    assert sent(out) == {A0: 2}


def test_a_recorded_format_is_not_told_again() -> None:
    """Another format's message is a bad one, and never makes another choice."""
    logic = fetcher({"a": "canal-json"})
    out = logic.handle(msg.Polled((fetched(A0, ogg(), canal()),)), 0.0)
    assert not [m for m in told(out) if isinstance(m, msg.FormatDetected)]
    letters = [e.message for e in out if isinstance(e, fx.Tell) and e.to.role == "dead-letters"]
    (letter,) = [m for m in letters if isinstance(m, msg.DeadLetter)]
    wrong = "a message of ogg-json in a topic of canal-json: a Canal message without a type"
    assert (letter.offset, letter.reason) == (0, wrong)
    assert letter.value is not None
    assert unpack(letter.value) == unpack(ogg())
    assert shares(logic, out) == [("lake.s.t", [1], "canal-json")]


@pytest.mark.parametrize(
    "bounds", [RecognitionBounds(messages=3), RecognitionBounds(bytes=3 * len(ROW) + 300)]
)
def test_what_waits_is_bounded(bounds: RecognitionBounds) -> None:
    """The pipeline stops with what came and the formats that it may be of."""
    logic = fetcher(bounds=bounds)
    for first in range(3):
        out = logic.handle(msg.Polled((fetched(A0, ROW, first=first),)), 0.0)
        assert failure(out) == ""
    reason = failure(logic.handle(msg.Polled((fetched(A0, TOMBSTONE, first=3),)), 0.0))
    assert reason.startswith(
        "a: its format can't be detected from its first 4 messages: an object of "
    )
    assert "debezium-json (1)" in reason  # the tombstone


def test_a_late_message_tells_nothing_whatever_the_size_of_a_poll() -> None:
    """Or one run would stop and the next would not."""
    late = fetched(A0, ROW, ROW, canal())
    logic = fetcher(bounds=RecognitionBounds(messages=2))
    assert "can't be detected" in failure(logic.handle(msg.Polled((late,)), 0.0))


def test_a_run_to_the_end_ends_where_a_format_is_not_told() -> None:
    """It would wait for ever for what is not in the log."""
    logic = fetcher(until={A0: 1, A1: 2, B0: 0})
    out = logic.handle(msg.Polled((fetched(A0, TOMBSTONE),), {A0: 1, A1: 1}), 0.0)
    assert failure(out) == ""
    out = logic.handle(msg.Polled((), {A0: 1, A1: 2}), 0.0)
    assert "a: its format can't be detected from its first 1 message: no value (1)" in failure(out)


def test_an_empty_topic_holds_up_nothing() -> None:
    """Its format is told when something comes; a run to the end has nothing to tell."""
    logic = fetcher(until={A0: 0, A1: 0, B0: 1})
    out = logic.handle(msg.Polled((fetched(B0, ogg()),), {A0: 0, A1: 0, B0: 1}), 0.0)
    assert failure(out) == ""
    assert sent(out) == {B0: 1}


def test_a_format_that_the_options_rule_out_stops_the_pipeline() -> None:
    """Every message of the topic would be bad."""
    logic = fetcher(positions="postgres-lsn")
    out = logic.handle(msg.Polled((fetched(A0, canal()),)), 0.0)
    assert failure(out).startswith("a is of format canal-json: canal-json gives no other positions")


def test_messages_that_come_in_parts_are_put_together() -> None:
    """The first part tells the format, and holds the frontier."""
    logic = fetcher()
    first, *rest = dts(1)
    out = logic.handle(msg.Polled((fetched(A0, first),)), 0.0)
    (opened,) = [m for m in told(out) if isinstance(m, msg.Dispatched)]
    assert list(opened.fragments.values()) == [0]
    out = logic.handle(msg.Polled((fetched(A0, *rest, first=1),)), 0.0)
    assert shares(logic, out) == [("lake.s.t", [len(rest)], "tencent-dts")]


def test_a_stop_lets_go_of_what_waits() -> None:
    """It is read again by the next run."""
    logic = fetcher()
    logic.handle(msg.Polled((fetched(A0, TOMBSTONE),)), 0.0)
    logic.handle(msg.StopFetching(), 0.0)
    out = logic.handle(msg.Polled((fetched(A1, canal()),)), 0.0)
    assert sent(out) == {}


def test_the_figures_tell_formats_and_what_waits() -> None:
    """So that an operator sees what was chosen, and for what a topic waits."""
    logic = fetcher()
    logic.handle(msg.Polled((fetched(A0, TOMBSTONE), fetched(B0, ogg()))), 0.0)
    (reply,) = logic.handle(Figures(), 0.0)
    assert isinstance(reply, fx.Reply)
    figures = reply.value
    assert isinstance(figures, FetcherFigures)
    assert (figures.formats, figures.formats_awaited) == ({"b": "ogg-json"}, {"a": 1})
    assert figures.parked_bytes > 0


def test_the_choice_is_recorded_with_the_frontiers() -> None:
    """And one that is recorded stays, of a topic that is not read now too."""
    recorded = Snapshot("p", "g", formats={"old": "ogg-json"})
    logic = CommitterLogic("p", recorded, 5.0, None)
    logic.handle(msg.FormatDetected("a", "canal-json"), 0.0)
    assert logic.snapshot().formats == {"old": "ogg-json", "a": "canal-json"}


def test_a_writer_that_is_not_read_is_named_at_once() -> None:
    """Not after a thousand messages, and not as what it might be."""
    metadata = {"record-type": "data", "operation": "load", "table-name": "t"}
    body = {"data": {"id": 1}, "metadata": metadata}
    logic = fetcher()
    out = logic.handle(msg.Polled((fetched(A0, pack(None, json.dumps(body).encode())),)), 1.0)
    assert failure(out) == "a holds AWS DMS's JSON, which is not read"

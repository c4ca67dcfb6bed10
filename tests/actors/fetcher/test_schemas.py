"""The fetcher's rule for messages whose schema is not kept yet: they wait, others go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import Figures, RegistryFigures, SchemasAwaited
from actors.fetcher.recognition import RecognitionBounds
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.mailbox import Tick
from changes.formats.engine.format import VALUE_AT, pack, sizes
from changes.formats.upsert.json import UpsertJson
from changes.formats.wire.schemas import SchemaId
from changes.model.model import BadMessage, FormatOptions, Head, Mode
from changes.model.registry import Registry
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
SEVEN, EIGHT = SchemaId("id", "7"), SchemaId("id", "8")
REGISTRY = Registry("confluent", Path("/nowhere"))


class Framed(UpsertJson):
    """Upsert rows whose values name a schema; those of 9 can't be read."""

    framed = True

    def peek(self, value: bytes | None) -> Head:
        assert value is not None
        size = max(sizes(value)[0], 0)
        if value[VALUE_AT : VALUE_AT + min(size, 5)] == b"\0\0\0\0\x09":
            raise BadMessage("schema id 9 is not kept")
        return super().peek(value)


def row(schema: int | None = 7) -> bytes:
    frame = b"" if schema is None else b"\0" + schema.to_bytes(4, "big")
    return pack(b'{"id":1}', frame + json.dumps({"id": 1}).encode())


def fetched(source: TopicPartition, *values: bytes, first: int = 0) -> msg.Fetched:
    return msg.Fetched(source, list(range(first, first + len(values))), list(values),
                       first + len(values))  # fmt: skip


class Flow:
    """A fetcher with three partitions, and what came of each message."""

    def __init__(self, **settings: object) -> None:
        options = {"default_database": "s", "default_table": "t"}
        format_ = Framed(FormatOptions(extra=options, registry=REGISTRY))
        router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
        made = FetcherSettings(registry=REGISTRY, **settings)  # type: ignore[arg-type]
        self.logic = FetcherLogic("p", format_, router, 1, made)
        self.now = 0.0
        self.out: list[fx.FetcherEffect] = []
        self.assign(A0, A1, B0)

    def assign(self, *sources: TopicPartition) -> None:
        logs = dict.fromkeys(sources, Watermarks(0, 100))
        self.hear(msg.Assigned(dict.fromkeys(sources, 0), logs))

    def hear(self, message: object) -> list[fx.FetcherEffect]:
        self.out = self.logic.handle(message, self.now)
        return self.out

    def poll(self, *batches: msg.Fetched, **positions: int) -> list[fx.FetcherEffect]:
        """A poll, and the registry's folder that has nothing yet."""
        self.hear(msg.Polled(batches))
        before = self.out
        if any(isinstance(each, fx.WantSchemas) for each in before):
            self.out = [*before, *self.hear(msg.SchemasKept(()))]
        return self.out

    @property
    def sent(self) -> dict[TopicPartition, int]:
        told = [e.message for e in self.out if isinstance(e, fx.Tell)]
        return {m.source: m.next_offset for m in told if isinstance(m, msg.Dispatched)}

    @property
    def flow(self) -> list[fx.FetcherEffect]:
        return [each for each in self.out if isinstance(each, fx.Pause | fx.Resume)]

    @property
    def failure(self) -> str:
        told = [e.message for e in self.out if isinstance(e, fx.Tell)]
        return next((m.reason for m in told if isinstance(m, msg.PipelineFailed)), "")


def test_a_schema_that_is_kept_holds_nothing_up() -> None:
    """The folder answers at once; the next message of it asks nobody."""
    flow = Flow()
    flow.hear(msg.Polled((fetched(A0, row()),)))
    assert [e for e in flow.out if isinstance(e, fx.WantSchemas)] == [fx.WantSchemas((SEVEN,))]
    assert flow.sent == {}
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert (flow.sent, flow.flow) == ({A0: 1}, [])
    flow.hear(msg.Polled((fetched(A0, row(), first=1),)))
    assert flow.sent == {A0: 2}
    assert not any(isinstance(each, fx.WantSchemas) for each in flow.out)


def test_a_partition_waits_in_its_order_and_the_others_go_on() -> None:
    """It is paused, so that it holds what one poll brought."""
    flow = Flow()
    flow.poll(fetched(A0, row(None), row(7)), fetched(B0, row(None)))
    assert (flow.sent, flow.flow) == ({B0: 1}, [fx.Pause((A0,))])
    flow.poll(fetched(A0, row(None), row(8), first=2))
    assert (flow.sent, flow.flow) == ({}, [])
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert flow.sent == {}  # it waits for the other one, too
    flow.hear(msg.SchemasKept((EIGHT,)))
    told = [e.message for e in flow.out if isinstance(e, fx.Tell)]
    assert [m.next_offset for m in told if isinstance(m, msg.Dispatched)] == [2, 4]
    assert flow.flow == [fx.Resume((A0,))]


def test_a_partition_that_waits_for_the_same_schema_later_is_paused_too() -> None:
    """Nobody asks again for it; unpaused, it would fill the memory until nothing is polled."""
    flow = Flow()
    flow.poll(fetched(A0, row(7)))
    flow.poll(fetched(A1, row(7)), fetched(B0, row(None)))
    assert (flow.sent, flow.flow) == ({B0: 1}, [fx.Pause((A1,))])
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert (flow.sent, flow.flow) == ({A0: 1, A1: 1}, [fx.Resume((A0, A1))])


def test_positions_do_not_pass_what_waits() -> None:
    """The consumer has read on; the frontier may not."""
    flow = Flow()
    flow.poll(fetched(A0, row()))
    flow.hear(msg.Polled((), {A0: 5, B0: 3}))
    assert flow.sent == {B0: 3}


def test_a_schema_is_asked_for_once_for_all_partitions() -> None:
    flow = Flow()
    flow.poll(fetched(A0, row()), fetched(A1, row()))
    wanted = [each for each in flow.out if isinstance(each, fx.WantSchemas)]
    assert wanted == [fx.WantSchemas((SEVEN,))]
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert flow.sent == {A0: 1, A1: 1}


def test_what_was_taken_away_is_forgotten() -> None:
    """The next owner reads it again. The same partition, given back, waits again."""
    flow = Flow()
    flow.poll(fetched(A0, row()))
    flow.hear(msg.Revoked((A0,)))
    flow.assign(A0)
    assert flow.flow == [fx.Resume()]
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert flow.sent == {}
    flow.poll(fetched(A0, row()))
    assert flow.sent == {A0: 1}


def test_a_partition_that_waits_stays_paused_when_the_others_resume() -> None:
    """An assignment lets all flow in the client, whatever was paused before."""
    flow = Flow()
    flow.poll(fetched(A0, row()))
    flow.hear(msg.Revoked((B0,)))
    flow.assign(B0)
    assert flow.flow == [fx.Resume(), fx.Pause((A0,))]


def test_a_missing_schema_makes_a_bad_record_that_names_it() -> None:
    """Stored, or the end of the pipeline, as configured; what is good beside it goes on."""
    flow = Flow(dead_letters=True)
    flow.poll(fetched(A0, row(None), row(9), row(None)))
    flow.hear(msg.SchemaMissing(SchemaId("id", "9"), "registry main does not have it: schema id 9"))
    letters = [e.message for e in flow.out if isinstance(e, fx.Tell)]
    (letter,) = (each for each in letters if isinstance(each, msg.DeadLetter))
    assert letter.offset == 1
    assert letter.reason.startswith("registry main does not have it: schema id 9. Register it")
    assert flow.sent == {A0: 3}
    flow = Flow()
    flow.poll(fetched(A0, row(9)))
    flow.hear(msg.SchemaMissing(SchemaId("id", "9"), "registry main does not have it: schema id 9"))
    assert flow.failure.startswith("a:0 offset 0: registry main does not have it: schema id 9. ")


def test_a_second_meaning_stops_the_pipeline() -> None:
    """What waits is not sent on, what is kept is decoded with no more."""
    flow = Flow()
    flow.poll(fetched(A0, row()))
    flow.hear(msg.SchemaRefused(SEVEN, "registry main: another"))
    assert flow.failure == "registry main: another"
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert flow.out == []


def test_a_run_that_reads_what_is_there_does_not_wait_for_ever() -> None:
    """With the registry away it ends by name."""
    flow = Flow(until={A0: 1}, schema_patience_s=80.0)
    flow.poll(fetched(A0, row()))
    flow.hear(msg.RegistryState("main", "http://r: refused"))
    flow.now = 79.0
    flow.poll()
    assert flow.failure == ""
    flow.now = 81.0
    flow.poll()
    assert flow.failure == (
        "a: 1 message waits for schema id 7, which registry main has not given for 80 s: "
        "http://r: refused"
    )


def test_too_much_in_hand_stops_reading_until_a_schema_comes() -> None:
    """Many partitions may wait at once: together they are bounded, too."""
    flow = Flow(recognition=RecognitionBounds(of_all=1), patience_s=0.0)
    flow.poll(fetched(A0, row()))
    flow.hear(Tick())
    assert fx.Pause() in flow.out
    flow.hear(msg.SchemasKept((SEVEN,)))
    assert flow.sent == {A0: 1}
    assert fx.Resume() in flow.out
    assert fx.WakeAt(0.0) in flow.out


@pytest.mark.parametrize("away", ["http://r: refused", None])
def test_the_status_says_what_waits_and_why(away: str | None) -> None:
    flow = Flow()
    flow.poll(fetched(A0, row(), row()), fetched(A1, row(8)))
    flow.hear(msg.RegistryState("main", away))
    flow.now = 5.0
    (reply,) = flow.hear(Figures())
    assert isinstance(reply, fx.Reply)
    awaited = {"a": SchemasAwaited(3, ("id 7", "id 8"))}
    expected = RegistryFigures(away, None if away is None else 5.0, awaited)
    assert reply.value.registry == expected  # type: ignore[attr-defined]

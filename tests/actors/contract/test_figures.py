"""What the actors answer when they are asked how it stands."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import CommitterFigures, FetcherFigures, Figures, ProcessorFigures
from actors.contract.histogram import FRESH_S, WRITE_S
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableSchema, TargetName
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot
from tests.actors.settings import settings_of

SOURCE = TopicPartition("binlog", 0)
LOG = Watermarks(0, 100)
ROUTER = Router([Route(("s.t",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
TARGET = TargetName("lake", "s", "t")
SCHEMA = TableSchema((Column("id", pa.int64()),), ("id",))


def row(table: str = "t", number: int = 1) -> bytes:
    body = {
        "database": "s", "table": table, "type": "INSERT", "isDdl": False, "pkNames": ["id"],
        "mysqlType": {"id": "int(11)"}, "data": [{"id": str(number)}], "old": None,
        "es": 1, "ts": 1, "sql": "", "id": 1,
    }  # fmt: skip
    return json.dumps(body).encode()


def answer(logic: Any, now: float) -> Any:
    (reply,) = [e for e in logic.handle(Figures(), now) if isinstance(e, fx.Reply)]
    return reply.value


def fetcher() -> FetcherLogic:
    format_ = FORMATS["canal-json"](FormatOptions())
    return FetcherLogic("p", format_, ROUTER, 1, FetcherSettings())


def test_a_fetcher_that_was_given_no_partition_is_assigned_all_the_same() -> None:
    """A group with more members than partitions is a healthy one."""
    logic = fetcher()
    before: FetcherFigures = answer(logic, 0.0)
    logic.handle(msg.Assigned({}, {}), 0.0)
    after: FetcherFigures = answer(logic, 0.0)
    assert (before.assigned, after.assigned) == (False, True)


def test_the_fetcher_counts_what_no_route_wants() -> None:
    """Read, and dropped on purpose: a typo in a pattern shows here."""
    logic = fetcher()
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 0.0)
    values = [row(), row("other")]
    logic.handle(msg.Polled((msg.Fetched(SOURCE, [0, 1], list(values), 2),)), 0.0)
    seen: FetcherFigures = answer(logic, 0.0)
    assert (seen.messages, seen.dropped, seen.positions) == (2, 1, {SOURCE: 2})


def test_a_fetcher_that_lost_its_partitions_waits_to_be_assigned() -> None:
    """It reads nothing: that it has no lag, and is ready, would not be true."""
    logic = fetcher()
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 0.0)
    logic.handle(msg.Revoked((SOURCE,)), 0.0)
    assert answer(logic, 0.0).assigned
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 0.0)
    logic.handle(msg.Revoked((SOURCE,), lost=True), 0.0)
    assert not answer(logic, 0.0).assigned
    logic.handle(msg.Assigned({}, {}), 0.0)
    assert answer(logic, 0.0).assigned


def test_a_broker_that_is_away_is_told_with_since_when() -> None:
    """And no more once it is back."""
    logic = fetcher()
    logic.handle(msg.Polled(state=msg.SourceState(False)), 10.0)
    logic.handle(msg.Polled(state=msg.SourceState(False)), 12.0)
    assert answer(logic, 15.0).unreachable_s == 5.0
    logic.handle(msg.Polled(state=msg.SourceState(True)), 16.0)
    assert answer(logic, 17.0).unreachable_s is None


def committer() -> CommitterLogic:
    logic = CommitterLogic("p", Snapshot("p", "g"), 5.0, False)
    logic.handle(msg.EpochStarted(1, SOURCE, 0, 100, None), 0.0)
    sent = msg.Dispatched(1, SOURCE, 10, {"lake.s.a": (0, 8), "lake.s.b": (3, 9)}, 1_000)
    logic.handle(sent, 0.0)
    logic.handle(msg.Dispatched(1, SOURCE, 20, {"lake.s.a": (10, 19)}, 2_000), 0.0)
    return logic


def written(target: str, through: int) -> msg.Written:
    name = TargetName(*target.split("."))
    return msg.Written(name, {SOURCE: 1}, {SOURCE: through}, TargetState(), 1)


def test_the_committer_names_who_holds_the_frontier() -> None:
    """The lowest lane first, with the age of its oldest message."""
    logic = committer()
    logic.handle(written("lake.s.a", 8), 0.0)
    seen: CommitterFigures = answer(logic, 0.0)
    partition = seen.partitions[SOURCE]
    assert (partition.frontier, partition.position) == (3, 20)
    held = [(lane.target, lane.first, lane.time_ms) for lane in partition.lanes]
    assert held == [("lake.s.b", 3, 1_000), ("lake.s.a", 9, 1_000)]


def test_each_write_is_counted_by_its_seconds_and_by_the_age_of_its_newest_message() -> None:
    """What needs no write, and what comes of a spill, whose times are not known, is not."""
    logic = committer()
    first = replace(written("lake.s.a", 8), seconds=0.2, at_ms=1_400)
    logic.handle(first, 0.0)
    logic.handle(replace(written("lake.s.a", 19), seconds=400.0, at_ms=1_900), 0.0)
    logic.handle(written("lake.s.b", 9), 0.0)
    logic.handle(replace(first, epochs={SOURCE: msg.OF_SPILL}, seconds=0.2), 0.0)
    seen: CommitterFigures = answer(logic, 0.0)
    assert dict(zip([*WRITE_S, None], seen.write_s.counts, strict=True)) == {
        **dict.fromkeys(WRITE_S, 0), 0.25: 2, None: 1
    }  # fmt: skip
    assert seen.write_s.sum == pytest.approx(400.4)
    assert dict(zip([*FRESH_S, None], seen.write_freshness_s.counts, strict=True)) == {
        **dict.fromkeys(FRESH_S, 0), 0.25: 1, 0.5: 1, None: 0
    }  # fmt: skip
    assert seen.write_freshness_s.sum == pytest.approx(0.4)


def test_freshness_is_the_time_of_the_newest_message_applied() -> None:
    """Per target, and per partition at its frontier."""
    logic = committer()
    logic.handle(written("lake.s.a", 19), 0.0)
    seen: CommitterFigures = answer(logic, 0.0)
    assert seen.applied_ms == {"lake.s.a": 2_000}
    assert seen.partitions[SOURCE].applied_ms is None
    logic.handle(written("lake.s.b", 9), 0.0)
    assert answer(logic, 0.0).partitions[SOURCE].applied_ms == 2_000


def test_an_offset_file_that_cannot_be_written_shows() -> None:
    """Until it can be again."""
    logic = committer()
    logic.handle(msg.SaveFailed("disk full"), 1.0)
    assert answer(logic, 1.0).save_error == "disk full"
    logic.handle(msg.Saved({}), 2.0)
    seen: CommitterFigures = answer(logic, 5.0)
    assert (seen.save_error, seen.saved_age_s) == (None, 3.0)


def processor() -> ProcessorLogic:
    logic = ProcessorLogic(
        Address("p", "processor"), FORMATS["canal-json"](FormatOptions()), ROUTER,
        settings_of(), "run", lambda: 0.5,
    )  # fmt: skip
    logic.handle(batch(0, 1), 0.0)
    return logic


def batch(*offsets: int) -> msg.RecordBatch:
    (route,) = ROUTER.targets(_table())
    share = msg.Share(route, Messages(list(offsets), [row(number=n) for n in offsets], 100))
    return msg.RecordBatch(1, SOURCE, (share,), 100, LOG)


def _table() -> Any:
    from changes.model.model import TableName

    return TableName("s", "t")


def only(logic: ProcessorLogic, now: float) -> Any:
    seen: ProcessorFigures = answer(logic, now)
    (target,) = seen.targets
    return target


def test_a_target_tells_what_waits_and_for_how_long() -> None:
    """Undecoded messages, their bytes, the age of the oldest."""
    seen = only(processor(), 4.0)
    assert (seen.phase, seen.buffered_messages, seen.buffered_bytes) == ("opening", 2, 100)
    assert (seen.waiting_s, seen.write, seen.error) == (4.0, None, None)


def submitted(now: float) -> ProcessorLogic:
    logic = processor()
    for message in (
        msg.Opened(TARGET, TargetState()),
        msg.Staged(
            TARGET,
            "/1.parquet",
            rows=2,
            size=50,
            changes=2,
            nulled=1,
            schema=SCHEMA,
            mode=Mode.UPSERT,
        ),
    ):
        logic.handle(message, now)
    return logic


def test_a_write_in_flight_has_an_age_and_an_attempt() -> None:
    """From when it was handed over: waiting for a free writer counts."""
    seen = only(submitted(10.0), 13.0)
    assert (seen.write.rows, seen.write.age_s, seen.write.attempt) == (2, 3.0, 1)
    assert (seen.rows_read, seen.rows_written, seen.values_nulled) == (2, 0, 1)


def test_an_error_lasts_until_a_write_succeeds() -> None:
    """It is still shown afterwards, as one that is over."""
    logic = submitted(10.0)
    logic.handle(msg.Failed(TARGET, msg.FailureKind.RETRY, "catalog away"), 11.0)
    seen = only(logic, 12.0)
    assert (seen.error.reason, seen.error.age_s, seen.error.lasting) == ("catalog away", 1.0, True)
    assert (seen.write.attempt, seen.write.retry_in_s is not None) == (2, True)
    state = TargetState(hwms={SOURCE: 1})
    logic.handle(msg.Written(TARGET, {SOURCE: 1}, {SOURCE: 1}, state, 2), 13.0)
    seen = only(logic, 13.0)
    assert (seen.error.lasting, seen.rows_written, seen.rows_stored) == (False, 2, 2)


def test_replays_are_counted_before_they_are_dropped() -> None:
    """A restart shows how much was read twice."""
    logic = processor()
    logic.handle(msg.Opened(TARGET, TargetState(hwms={SOURCE: 0})), 2.0)
    seen = only(logic, 2.0)
    assert (seen.messages_read, seen.messages_replayed) == (2, 1)


def test_what_comes_for_a_stopped_target_is_counted_as_dropped() -> None:
    """It will be read again: the frontier stays below it."""
    logic = submitted(10.0)
    logic.handle(msg.Failed(TARGET, msg.FailureKind.REFUSED, "no"), 11.0)
    logic.handle(batch(2, 3), 12.0)
    seen = only(logic, 12.0)
    assert (seen.phase, seen.messages_dropped, seen.error.lasting) == ("stopped", 2, True)

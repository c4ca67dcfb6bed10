"""What targets hold beside the log: what agrees, what differs, what can't be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from changes.formats.canal.protobuf import CanalProtobuf
from changes.model.model import FormatOptions, TableName
from changes.model.row_events import RowEvent
from daemon.cli.counts.held_side import (
    HeldDifference,
    HeldSide,
    TargetHolds,
    as_targets_count,
)
from daemon.state.dead_letters.standing import Standing
from offsets.counts import NO_MINUTE, CountRow, LaneCounts, RowCounts
from offsets.position import TopicPartition
from tests.changes.formats import protobuf_records as wire
from tests.daemon.cli.counts.debezium_log import LOG as SHOP
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog

LOG = TopicPartition("shop", 0)
TARGET, OTHER = "lake.s.t", "lake.s.u"
MINUTES = range(100, 103)


class Log:
    """Events from offset 1 on, one each, of a minute; letters and rows as they are given."""

    def __init__(
        self,
        *rows: CountRow,
        letters: Mapping[int, Mapping[str | None, Standing]] | None = None,
        minutes: range = MINUTES,
    ) -> None:
        found = letters or {}
        self.side = HeldSide(minutes, lambda *_: rows, lambda _, offset: found.get(offset, {}))
        self.side.begin({LOG: 1})
        self.offset = 0

    def see(self, *minutes: int, op: str = "I", read: bool = False) -> Log:
        for minute in minutes:
            self.offset += 1
            event = RowEvent(TableName("s", "t"), op, minute * 60_000, read)
            self.side.see(LOG, self.offset, event, (TARGET,))
        return self

    def holds(self, target: str = TARGET) -> TargetHolds:
        return self.side.holds({LOG: self.offset})[target]


def row(after: int, through: int, target: str = TARGET, **minutes: int) -> CountRow:
    """A run; ``m100=3``: three changes of that minute."""
    counts = {int(name[1:]): RowCounts(count) for name, count in minutes.items()}
    return CountRow(target, LOG, through, LaneCounts(f"w{after}", after, through, counts))


def test_what_the_log_has_and_the_target_holds_agrees() -> None:
    """Also of both halves of a changed key; minutes around the range count nothing."""
    log = Log(row(0, 5, m99=1, m100=2, m102=2)).see(99, 100, 100).see(102, op="").see(102, op="U")
    assert log.holds() == TargetHolds(held=4)


def test_truncations_and_rows_that_were_read_are_no_changes() -> None:
    """The target counts those in no minute."""
    log = Log(row(0, 3, m100=1, **{f"m{NO_MINUTE}": 1}))
    log.see(100).see(101, op="T").see(101, read=True)
    assert log.holds() == TargetHolds(held=1)


def test_a_range_of_all_times_has_no_minute_of_none() -> None:
    """From 1970 on: rows that were read from the table are in no minute, there either."""
    rows = row(0, 2, m100=1, **{f"m{NO_MINUTE}": 5})
    log = Log(rows, minutes=range(NO_MINUTE, 103)).see(100).see(0, read=True)
    assert log.holds() == TargetHolds(held=1)


def test_a_minute_that_differs_is_named() -> None:
    """More or less; and one of which the log has nothing."""
    log = Log(row(0, 4, m100=1, m101=3), row(0, 4, OTHER, m102=1)).see(100, 100, 101, 101)
    differs = (HeldDifference(LOG, 100, 2, 1), HeldDifference(LOG, 101, 2, 3))
    assert log.holds() == TargetHolds(held=4, differences=differs)
    assert log.holds(OTHER).differences == (HeldDifference(LOG, 102, 0, 1),)


def test_what_is_not_counted_is_no_difference() -> None:
    """It can't be told."""
    log = Log(row(0, 2, m100=2)).see(100, 100, 101, 101)
    assert log.holds() == TargetHolds(
        held=2, why=("2 changes are not counted in the target, first shop:0:3",)
    )


def test_dead_letters_are_accounted_for() -> None:
    """An open one lacks; of the others somebody has decided. One may be of no single target."""
    letters = {
        1: {TARGET: Standing("open", 1)}, 2: {None: Standing("discarded", 2)},
        3: {"lake.s.other": Standing("open", 3)},
    }  # fmt: skip
    log = Log(row(0, 3, m100=1), letters=letters).see(100, 100, 100)
    assert log.holds() == TargetHolds(
        held=1, letters=1, open=("1 change is an open dead letter, first shop:0:1",)
    )


def test_what_was_read_again_in_part_cannot_be_told() -> None:
    """Nor can a minute that lacks changes while some are counted without one."""
    again = Log(row(0, 4, m100=4), row(3, 6, m101=3)).see(100, 100, 100)
    assert again.holds().why[-1] == (
        "shop:0 was read again, and what was counted before is not whole, from 1970-01-01T01:40Z on"
        ": reading it from offset 1 on counts it again"
    )
    timeless = Log(row(0, 3, m100=1, **{f"m{NO_MINUTE}": 2})).see(100, 100, 100).holds()
    assert (timeless.differences, len(timeless.why)) == ((), 1)
    assert "2 changes of shop:0 are counted without a minute" in timeless.why[0]


def test_a_message_of_several_minutes_counts_as_its_targets_count_it() -> None:
    """A packet of Canal's is cut for each target, and each counts what it gets by the earliest time
    in that."""
    at = {"t": [100, 101], "u": [102]}
    entries = [
        wire.canal_rows(
            "INSERT",
            [wire.canal_row((), [wire.canal_column("id", str(minute), "int(11)", key=True)])],
            table,
            time_ms=minute * 60_000 + 1,
        )
        for table, minutes in at.items()
        for minute in minutes
    ]
    packet, format_ = wire.canal_packet(*entries), CanalProtobuf(FormatOptions())
    told = format_.row_events(packet, format_.peek(packet))
    events = [each for each in told if isinstance(each, RowEvent)]
    found: dict[str, Counter[int]] = {}
    for event, (target,) in as_targets_count(events, lambda table: (f"lake.{table}",)):
        assert event.time_ms is not None
        found.setdefault(target, Counter())[event.time_ms // 60_000] += 1
    for table, minutes in at.items():
        cut = [e.data for e in format_.entries(packet) if e.table == TableName("s", table)]
        time_ms = format_.source_ms(format_.joined(packet, cut))
        assert time_ms is not None
        assert found[f"lake.s.{table}"] == {time_ms // 60_000: len(minutes)}


def test_a_replayed_letter_is_held_once_its_new_place_is_counted() -> None:
    """Before that it can't be told; one that became a letter again is open there."""
    again = {1: {TARGET: Standing("replayed", 9)}}
    held = TargetHolds(held=1, letters=1)
    assert Log(row(1, 9, m101=1), letters=again).see(100, 101).holds() == held
    assert Log(row(1, 8, m101=1), letters=again).see(100, 101).holds() == TargetHolds(
        held=1, why=("1 change is not counted in the target, first shop:0:9",)
    )
    open_ = {1: {TARGET: Standing("open", 9)}}
    found = Log(row(1, 9, m101=1), letters=open_).see(100, 101).holds()
    assert found.open == ("1 change is an open dead letter, first shop:0:9",)


def test_reading_goes_on_to_the_end_of_what_was_counted_together() -> None:
    """A daemon that was behind counts hours in one run. A late change of the range, of a long
    transaction, would stand for one that the target lacks."""
    log = DebeziumLog().framed().at(0)
    log.transaction("1", "I", "I")
    for number in range(1000):  # records are looked at in groups
        log.at(25).transaction(f"{number + 9}", "I")
    log.begin("3")
    late = log.row("3", 1, ts_ms=MINUTE * 60_000 + 7)
    log.end("3", {"shop.t": 1})
    log.passed()
    counts = {MINUTE: RowCounts(2), MINUTE + 25: RowCounts(1000)}
    row = CountRow("lake.shop.t", SHOP, 1, LaneCounts("w", -1, late, counts))
    side = HeldSide(RANGE, lambda *_: [row], lambda *_: {})
    holds = log.scan(side=side).holds
    assert holds is not None
    assert holds["lake.shop.t"].differences == (HeldDifference(SHOP, MINUTE, 3, 2),)

"""Decoded changes are counted by the minute of the source's clock."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.contract.effects import LaneMessages
from actors.contract.raw_messages import Messages
from actors.staging.counting import counts_of
from actors.staging.decoding import decode_all
from changes.formats import make_format
from changes.formats.engine.format import pack
from changes.model.counts_table import staged_rows
from changes.model.model import FormatOptions, Mode
from offsets.counts import (
    LAST_MINUTE,
    NO_MINUTE,
    CountRow,
    LaneCounts,
    RowCounts,
    merged,
    minute_of,
)
from offsets.position import TopicPartition
from tests.changes.formats import protobuf_records as wire

LANE = TopicPartition("shop", 0)
MINUTE = 29_400_000


def canal(kind: str, *rows: dict[str, Any], old: Any = None, seconds: float = 0.0) -> bytes:
    record = {
        "database": "s", "table": "t", "type": kind, "isDdl": False, "pkNames": ["id"],
        "mysqlType": {"id": "int", "v": "int"}, "data": rows, "old": old,
        "es": MINUTE * 60_000 + round(seconds * 1000), "ts": 1,
    }  # fmt: skip
    return json.dumps(record).encode()


def test_rows_of_records_count_to_their_minutes() -> None:
    """A record of several rows; an update that changes a key is one."""
    values = [
        canal("INSERT", {"id": "1", "v": "1"}, {"id": "2", "v": "1"}),
        canal("UPDATE", {"id": "3", "v": "1"}, old=[{"id": "2"}], seconds=59.9),
        canal("UPDATE", {"id": "1", "v": "2"}, {"id": "4", "v": "1"},
              old=[{"v": "1"}, {"id": "3"}], seconds=60),
        canal("DELETE", {"id": "4", "v": "1"}, {"id": "1", "v": "2"}, seconds=-1),
    ]  # fmt: skip
    assert counted("canal-json", values) == {
        MINUTE: RowCounts(2, 1, 0),
        MINUTE + 1: RowCounts(0, 2, 0),
        MINUTE - 1: RowCounts(0, 0, 2),
    }
    assert counted("canal-json", values, Mode.APPEND) == counted("canal-json", values)


def test_times_that_no_table_could_have_are_of_no_minute() -> None:
    """As of a source whose messages have microseconds. Beside them others count to theirs, and the
    table of counts takes the last minute that a time can be of."""
    values = [
        canal("INSERT", {"id": "1", "v": "1"}, seconds=MINUTE * 60 * 999),
        canal("INSERT", {"id": "2", "v": "1"}),
        canal("INSERT", {"id": "3", "v": "1"}, seconds=(LAST_MINUTE - MINUTE) * 60 + 59),
        canal("INSERT", {"id": "4", "v": "1"}, seconds=(LAST_MINUTE + 1 - MINUTE) * 60),
    ]
    minutes = counted("canal-json", values)
    one = RowCounts(1)
    assert minutes == {NO_MINUTE: RowCounts(2), MINUTE: one, LAST_MINUTE: one}
    run = LaneCounts("w", -1, 3, minutes)
    assert staged_rows([CountRow("lake.s.t", LANE, 1, run)])[0].num_rows == 3
    assert minute_of(-1) == NO_MINUTE


def counted(format_name: str, values: list[bytes], mode: Mode = Mode.UPSERT) -> Any:
    format_ = make_format(format_name, FormatOptions())
    decoder = format_.table_decoder(mode, None)
    lane = LaneMessages(LANE, Messages.of([*range(len(values))], values))
    read, bad = decode_all(decoder, (lane,))
    assert bad is None
    return counts_of(read, format_)[LANE]


@pytest.mark.parametrize("op", ["r", "c"])
def test_rows_that_were_read_from_the_table_are_of_no_minute(op: str) -> None:
    """Their time is that of the reading."""
    source = {"db": "s", "table": "t", "ts_ms": MINUTE * 60_000, "snapshot": str(op == "r").lower(),
              "connector": "mysql"}  # fmt: skip
    record = {"before": None, "after": {"id": 1}, "op": op, "source": source, "ts_ms": 1}
    values = [pack(None, json.dumps(record).encode())]
    found = counted("debezium-json", values, Mode.APPEND)
    assert found == {NO_MINUTE if op == "r" else MINUTE: RowCounts(1)}


TIMES = [MINUTE * 60_000, MINUTE * 60_000 + 59_999, (MINUTE + 1) * 60_000]
_times = st.one_of(
    st.sampled_from([*TIMES, *(time // 1000 for time in TIMES), *map(str, TIMES)]),
    st.sampled_from([0, -1, None, True, 1.5, "x", 10**17, 10**17 - 1, 10**19, 10**30, [], {}]),
)
_calm_times = st.sampled_from(TIMES)


def canal_at(number: int, time: Any, _live: bool) -> bytes:
    values = {"id": str(number), "v": "1"}
    record = {
        "data": [values], "database": "s", "table": "t", "type": "INSERT", "isDdl": False,
        "pkNames": ["id"], "mysqlType": {"id": "int", "v": "int"}, "old": None, "es": time,
    }  # fmt: skip
    return json.dumps(record).encode()


def maxwell_at(number: int, time: Any, live: bool) -> bytes:
    kind = "insert" if live else "bootstrap-insert"
    record = {"database": "s", "table": "t", "type": kind, "ts": time, "data": {"id": number}}
    return pack(b'{"database":"s","table":"t","pk.id":%d}' % number, json.dumps(record).encode())


def debezium_at(number: int, time: Any, live: bool) -> bytes:
    source = {"db": "s", "table": "t", "ts_ms": time, "connector": "mysql"}
    # A snapshot's last row says so by another word than the others.
    told = [{}, {"snapshot": None}, {"snapshot": False}, {"snapshot": "false"}][number % 4]
    read = [{"snapshot": "last"}, {"snapshot": True}][number % 2]
    after, before = {"id": number}, {"id": number}
    op = "d" if live and number % 5 == 3 else "c"
    image = {"before": before, "after": None} if op == "d" else {"before": None, "after": after}
    record = {**image, "source": source | (told if live else read), "op": op, "ts_ms": 5}
    return pack(b'{"id":%d}' % number, json.dumps(record).encode())


def ogg_at(number: int, time: Any, live: bool) -> bytes:
    """With the time as a text, in a zone of its own where it is not ``live``."""
    if isinstance(time, int) and 0 < time < 10**14 and not isinstance(time, bool):
        zone = UTC if live else timezone(timedelta(hours=8))
        text = datetime.fromtimestamp(time / 1000, zone).isoformat(" ", "microseconds")
        time = text.removesuffix("+00:00")
    record = {"table": "s.t", "op_type": "I", "op_ts": time, "primary_keys": ["id"],
              "after": {"id": number}}  # fmt: skip
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("canal-json", canal_at),
        ("maxwell-json", maxwell_at),
        ("debezium-json", debezium_at),
        ("ogg-json", ogg_at),
    ],
)
@given(
    told=st.lists(st.tuples(_calm_times, st.just(True)), min_size=1, max_size=40),
    odd=st.lists(st.tuples(st.integers(0, 39), _times, st.booleans()), max_size=3),
)
def test_blocks_are_counted_as_each_record_by_itself(
    name: str, record: Any, told: list[tuple[Any, bool]], odd: list[tuple[int, Any, bool]]
) -> None:
    """However their times are written, and whatever stands between."""
    for place, *what in odd:
        told[place % len(told)] = (what[0], what[1])
    values = [record(number, time, live) for number, (time, live) in enumerate(told)]
    format_ = make_format(name, FormatOptions())
    times = [format_.source_ms(value) for value in values]
    expected = Counter(map(minute_of, times))
    found = counted(name, values)
    assert {minute: counts.total for minute, counts in found.items()} == expected
    assert found == merged(counted(name, [value]) for value in values)


@st.composite
def several(draw: st.DrawFn, times: st.SearchStrategy[int | None]) -> list[tuple[str, Any]]:
    """The entries of one message: rows and marks, each with its time. Mostly a transaction's."""
    if draw(st.integers(0, 3)):
        time = draw(times)
        return [("begin", time), ("rows", time), ("commit", time)]
    kinds = st.sampled_from(["begin", "bare", "rows", "commit", "mark"])
    return draw(st.lists(st.tuples(kinds, times), min_size=1, max_size=4))


def packet_of(number: int, entries: list[tuple[str, Any]]) -> bytes:
    """Canal's."""
    column = wire.canal_column("id", str(number), "int(11)", key=True)
    rows = [wire.canal_row((), [column])]
    marks = {"begin": 1, "bare": 1, "commit": 3, "mark": 4}
    return wire.canal_packet(
        *(
            wire.canal_rows("INSERT", rows, time_ms=time)
            if kind == "rows"
            else wire.canal_mark(marks[kind], time_ms=time)
            for kind, time in entries
        )
    )


def envelope_of(number: int, entries: list[tuple[str, Any]]) -> bytes:
    """Tencent's, whose times have no fraction of a second."""
    columns = [wire.dts_column("id", "int(11)", key=True)]
    rows = [wire.dts_row((), [wire.dts_number(3, str(number))])]
    made = []
    for kind, time_ms in entries:
        time = None if time_ms is None else time_ms // 1000
        if kind == "rows":
            made.append(wire.dts_rows(0, columns, rows, time_s=time))
        elif kind == "commit":
            made.append(wire.dts_commit(time_s=time))
        elif kind == "mark":
            made.append(wire.dts_heartbeat())
        else:
            made.append(wire.dts_begin(time, bare=kind == "bare"))
    return pack(None, wire.dts_message(*made))


_proto_times = st.sampled_from([*TIMES, *TIMES, None, 0, 1, 1_000_003, 1_000_003_000])


@pytest.mark.parametrize(
    ("name", "message"), [("canal-protobuf", packet_of), ("tencent-dts", envelope_of)]
)
@given(
    told=st.lists(several(st.sampled_from(TIMES)), min_size=1, max_size=40),
    odd=st.lists(st.tuples(st.integers(0, 39), several(_proto_times)), max_size=3),
)
def test_joined_messages_have_the_times_of_each_by_itself(
    name: str, message: Any, told: list[Any], odd: list[tuple[int, Any]]
) -> None:
    """Whatever entries stand in them, with and without a time of their own."""
    for place, entries in odd:
        told[place % len(told)] = entries
    told = [[("rows", TIMES[0])], *told]
    format_ = make_format(name, FormatOptions())
    values = [message(number, entries) for number, entries in enumerate(told)]
    expected = Counter[int]()
    for value, entries in zip(values, told, strict=True):
        rows = sum(kind == "rows" for kind, _ in entries)
        expected.update({minute_of(format_.source_ms(value)): rows} if rows else {})
    assert {minute: counts.total for minute, counts in counted(name, values).items()} == expected


@pytest.mark.parametrize(
    "entries",
    [
        [("rows", TIMES[0])],
        [("begin", TIMES[0]), ("rows", TIMES[1]), ("commit", TIMES[2])],
        [("begin", TIMES[0]), ("rows", TIMES[2]), ("rows", TIMES[1]), ("commit", TIMES[2])],
    ],
)
def test_joined_messages_ask_for_no_time(
    monkeypatch: pytest.MonkeyPatch, entries: list[tuple[str, Any]]
) -> None:
    for name, message in (("canal-protobuf", packet_of), ("tencent-dts", envelope_of)):
        kind: Any = type(make_format(name, FormatOptions()))
        with monkeypatch.context() as patched:
            asked: list[bytes] = []
            patched.setattr(kind, "source_ms", lambda _, value, asked=asked: asked.append(value))
            found = counted(name, [message(number, entries) for number in range(1000)])
            assert asked == [], name
            earliest = min(time for entry, time in entries if entry == "rows")
            assert found.keys() == {minute_of(earliest)}


def test_joined_records_of_goldengate_ask_for_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = type(make_format("ogg-json", FormatOptions()))
    asked: list[bytes] = []
    monkeypatch.setattr(kind, "source_ms", lambda _, value: asked.append(value))
    found = counted("ogg-json", [ogg_at(number, TIMES[0], True) for number in range(1000)])
    assert (asked, found.keys()) == ([], {minute_of(TIMES[0])})


def test_the_usual_block_asks_for_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking costs as much as decoding."""
    for record, name in (
        (canal_at, "canal-json"), (maxwell_at, "maxwell-json"), (debezium_at, "debezium-json"),
    ):  # fmt: skip
        kind = type(make_format(name, FormatOptions()))
        with monkeypatch.context() as patched:
            asked: list[bytes] = []
            patched.setattr(kind, "source_ms", lambda _, value, asked=asked: asked.append(value))
            found = counted(name, [record(number, TIMES[0], True) for number in range(1000)])
            assert sum(counts.total for counts in found.values()) == 1000
            # The first one teaches the decoder its columns.
            assert len(asked) <= 2, name

"""Decoded changes are counted by the minute of the source's clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.contract.effects import LaneMessages
from actors.contract.raw_messages import Messages
from actors.staging.counting import counts_of
from actors.staging.decoding import decode_all
from changes.formats import make_format
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from offsets.counts import NO_MINUTE, RowCounts
from offsets.position import TopicPartition

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

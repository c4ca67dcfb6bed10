"""The messages of the comparison, read by binlogd's own formats."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from bench.compare.debezium import row
from bench.compare.job import NAMESPACE
from bench.compare.messages import encoder, keys, messages
from bench.compare.rows import SENT, texts
from bench.compare.workloads import Workload, stream, workloads
from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode

EVERY = workloads(0.001)
SMALL = {name: EVERY[name] for name in ("wide", "wide-multi", "wide-dts", "databases-postgresql")}


def decoded(workload: Workload, count: int) -> pa.Table:
    """The changes of the messages of table t0 among the first ``count``."""
    format_ = FORMATS[workload.format](FormatOptions())
    groups = itertools.islice(stream(workload), count)
    encode = encoder(workload)
    key = keys(workload)
    values = [(key(g), encode(n, g, None)) for n, g in enumerate(groups) if g.table == 0]
    given = [pack(k, value) if format_.keyed else value for k, value in values]
    changes = format_.table_decoder(Mode.UPSERT, None).decode(0, list(range(len(given))), given)
    assert changes is not None
    return changes.table


@pytest.mark.parametrize("name", SMALL)
def test_messages_say_what_the_stream_says(name: str) -> None:
    """Each row of the first messages, in order, as binlogd reads it."""
    workload = replace(SMALL[name], tables=1)
    found = decoded(workload, 100).select(["id", "name", "qty"]).to_pylist()
    told = [
        (str(row.key), None if row.after is None else texts(row.key, row.after))
        for group in itertools.islice(stream(workload), 100)
        for row in group.rows
    ]
    # Of a row that was deleted only the key is left.
    assert [(str(row["id"]), row["name"], row["qty"]) for row in found] == [
        (key, text and text["name"], text and int(text["qty"])) for key, text in told
    ]


def test_a_canal_message_of_one_row_has_about_500_bytes() -> None:
    """As the workload promises."""
    sizes = [len(value) for value in messages(SMALL["wide"])]
    assert 480 < sum(sizes) / len(sizes) < 620


def test_an_update_tells_what_it_changed() -> None:
    """``old`` has the changed columns as they were."""
    update = next(g for g in stream(SMALL["wide"]) if g.op == "U")
    message = json.loads(encoder(SMALL["wide"])(7, update, None))
    assert message["database"] == NAMESPACE
    assert message["old"][0].keys() == {"amount", "qty"}
    assert message["data"][0]["qty"] != message["old"][0]["qty"]


def test_a_live_row_tells_when_it_was_sent() -> None:
    """In a column of its own."""
    fresh = EVERY["fresh"]
    message = json.loads(encoder(fresh)(0, next(stream(fresh)), 1_767_225_600_000))
    assert message["data"][0][SENT.name] == "1767225600000"
    assert SENT.name in message["mysqlType"]


def test_debeziums_values_are_the_texts() -> None:
    """Also decimals and times, which are numbers there: the expectation is made of the texts."""
    workload = replace(SMALL["databases-postgresql"], tables=1)
    found = decoded(workload, 200).select(["id", "amount", "created", "city"]).to_pylist()
    groups = itertools.islice(stream(workload), 200)
    rows = [texts(g.rows[0].key, g.rows[0].after) if g.rows[0].after else None for g in groups]
    assert len(found) == len(rows)
    assert [
        row["amount"] and (str(row["amount"]), str(row["created"]), row["city"]) for row in found
    ] == [text and (text["amount"], text["created"], text["city"]) for text in rows]


@pytest.mark.parametrize("version", [0, 1, 127, 128, 255, 256, 32_768, 9_999_999, 10_000_000])
def test_a_decimals_bytes_are_signed(version: int) -> None:
    """None of them is read as a number below zero."""
    bytes_ = base64.b64decode(row(1, version)["amount"])
    assert int.from_bytes(bytes_, "big", signed=True) == version % 10_000_000


def test_a_live_record_tells_when_it_was_sent() -> None:
    """In its image, and in the schema of it."""
    fresh = EVERY["databases-fresh"]
    told = json.loads(encoder(fresh)(0, next(stream(fresh)), 1_767_225_600_000))
    assert told["payload"]["after"][SENT.name] == 1_767_225_600_000
    after = next(one for one in told["schema"]["fields"] if one["field"] == "after")
    assert [field["field"] for field in after["fields"]] == list(told["payload"]["after"])

"""The messages of the comparison, read by binlogd's own formats."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from bench.compare.job import NAMESPACE
from bench.compare.messages import encoder, messages
from bench.compare.rows import SENT, texts
from bench.compare.workloads import Workload, stream, workloads
from changes.formats import FORMATS
from changes.formats.base import pack
from changes.model import FormatOptions, Mode

EVERY = workloads(0.001)
SMALL = {name: EVERY[name] for name in ("wide", "wide-multi", "wide-dts")}


def decoded(workload: Workload, count: int) -> pa.Table:
    """The changes of the messages of table t0 among the first ``count``."""
    format_ = FORMATS[workload.format](FormatOptions())
    groups = itertools.islice(stream(workload), count)
    encode = encoder(workload)
    values = [encode(n, g, None) for n, g in enumerate(groups) if g.table == 0]
    given = [pack(None, value) for value in values] if format_.keyed else values
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

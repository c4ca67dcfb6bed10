"""What is counted of each format's messages: its rows, as people read them."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS, make_format
from changes.formats.debezium.places import Names
from changes.formats.debezium.record import read
from changes.formats.engine.format import RowChange, pack
from changes.model.model import BadMessage, FormatOptions, Kind
from changes.model.row_events import RowEvent
from tests.changes.formats import own_records

ROWS = (Kind.ROWS, Kind.MULTI_ENTRY)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_message_counts_as_many_as_it_explains(name: str) -> None:
    """Of each that can be read; none is taken for another table's, or another operation."""
    names = Names("d", "t")
    extra = {"default_database": "d", "default_table": "t"}
    format_, counted = make_format(name, FormatOptions(extra=extra)), 0
    for record in own_records.known(name):
        value = pack(*record) if format_.keyed else record.value
        format_.turn_to("p", 0, 1)
        try:
            head = format_.peek(value)
            found = format_.explain(value) if head.kind in ROWS else ()
        except BadMessage:
            continue
        if name == "debezium-json" and read(pack(*record), names).tombstone is not None:
            continue  # it repeats a delete
        rows = [(e.table, e.op) for e in found if isinstance(e, RowChange)]
        events = format_.row_events(value, head)
        assert [(e.table, e.op) for e in events if isinstance(e, RowEvent) and e.op != "T"] == rows
        counted += len(rows)
    assert counted or name in own_records.BY_NAME_ALONE


@pytest.mark.parametrize("type_", ["bootstrap-insert", "insert"])
def test_maxwells_bootstrap_reads_a_table(type_: str) -> None:
    text = b'{"database":"d","table":"t","type":"%s","ts":5,"data":{"id":1}}' % type_.encode()
    format_ = make_format("maxwell-json", FormatOptions())
    packed = pack(None, text)
    (found,) = format_.row_events(packed, format_.peek(packed))
    assert isinstance(found, RowEvent)
    assert (found.read, found.time_ms) == ((True, None) if "boot" in type_ else (False, 5000))

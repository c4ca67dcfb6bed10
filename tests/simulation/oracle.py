"""What a stream must have led to."""

from __future__ import annotations

from tests.simulation.durable import Durable
from tests.simulation.source import CHANGELOG
from tests.simulation.stream import Stream

ALIKE, MORE = "nothing tells whether they are of one row", "and more since, which the log names"


def assert_equal(durable: Durable, stream: Stream) -> None:
    """Tables equal the oracle's, the changelog has every change once, in lane order; nothing is in
    quarantine, and the dead letters are just the records that can't be applied."""
    sink = durable.sink
    for name, rows in stream.tables.items():
        table = sink.tables.get(name)
        columns = {column for row in rows.values() for column in row}
        stored = {} if table is None or table.plan.dropped else table.shown()
        # A column that was dropped may be kept; one that no row ever named need not be there.
        shown = {
            key: {column: row.get(column) for column in columns} for key, row in stored.items()
        }
        assert shown == rows, name
        marked = table is not None and table.differs is not None
        assert marked or name not in stream.doubted, name
        plain = not (stream.shape.ddl or stream.shape.minimal)
        # Rows that move twice in a row look as two that are equal would: they may be told.
        doubts = [] if table is None or table.differs is None else table.differs.split("; ")
        others = [doubt for doubt in doubts if ALIKE not in doubt]
        assert not plain or others in ([], [MORE][: len(doubts) - 1]), (name, doubts)
    for name in stream.kept:
        held = sink.tables.get(name)
        assert held is None or held.plan.dropped, name
        assert held is None or stream.shape.policy.drop_table == "keep", name
    entries = sink.tables[CHANGELOG].entries if CHANGELOG in sink.tables else []
    for source, log in stream.changelog.items():
        assert [entry for entry in entries if entry[1] == source.partition] == log, source
    assert set(durable.letters) == stream.letters
    # Nobody counts here: an older version must be able to read the marks.
    assert not any(table.marks.counts for table in sink.tables.values())
    assert not any(records for _, records in durable.spills.files.values())

"""What a stream must have led to."""

from __future__ import annotations

from tests.simulation.stream import Stream
from tests.simulation.world import Durable


def assert_equal(durable: Durable, stream: Stream) -> None:
    """The tables equal the oracle's, and the changelog has every change once, in lane order."""
    for name, rows in stream.tables.items():
        assert durable.sink.tables.get(name, {}) == rows, name
    written = durable.sink.logs.get("lake.log.all", [])
    for source, log in stream.changelog.items():
        assert [entry for entry in written if entry[1] == source.partition] == log, source

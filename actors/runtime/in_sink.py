"""What a writer has its sink do. On its thread; both raise as the sink's port says."""

from __future__ import annotations

import time
from collections.abc import Sequence

from actors.contract import messages as msg
from actors.contract.ports import BatchWriter, Tags, WritesTogether
from actors.contract.writes import StagedBatch


def published(sink: BatchWriter, batch: StagedBatch) -> msg.Published:
    """Publish a batch, and tell how long that took."""
    begun = time.monotonic()
    state = sink.write(batch)
    return msg.Published(state, time.monotonic() - begun, time.time_ns() // 1_000_000)


def published_together(
    sink: BatchWriter, writes: Sequence[msg.WriteBatch]
) -> msg.PublishedTogether:
    """Publish batches of several targets at once, and tell how long that took."""
    assert isinstance(sink, WritesTogether)  # the configuration was checked
    begun = time.monotonic()
    states = sink.write_together([write.batch for write in writes])
    took, at_ms = time.monotonic() - begun, time.time_ns() // 1_000_000
    return msg.PublishedTogether(tuple(msg.Published(state, took, at_ms) for state in states))


def tagged(sink: BatchWriter, wanted: msg.TagVersion) -> msg.Tagged:
    """Name a version of a table as a cut's."""
    assert isinstance(sink, Tags)  # the configuration was checked
    if wanted.above is not None:
        sink.untag(wanted.target, wanted.above)
    sink.tag(wanted.target, wanted.version, wanted.number, wanted.keep)
    return msg.Tagged(wanted.target)

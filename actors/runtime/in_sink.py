"""What a writer has its sink do. On its thread; they raise as the sink's port says."""

from __future__ import annotations

import time
from collections.abc import Sequence

from actors.contract import messages as msg
from actors.contract.ports import BatchWriter, OneFailed, Tags, WritesTogether
from actors.contract.writes import StagedBatch
from changes.model.errors import (
    LostRace,
    SinkAway,
    SinkUnavailable,
    TargetRefused,
    WaitsForName,
    WaitsForRows,
)
from changes.model.model import TargetName
from changes.model.printable import reason_of
from offsets.fence import Fenced, Straggler


def published(sink: BatchWriter, batch: StagedBatch) -> msg.Published:
    """Publish a batch, and tell how long that took."""
    begun = time.monotonic()
    state = sink.write(batch)
    return msg.Published(state, time.monotonic() - begun, time.time_ns() // 1_000_000)


def published_together(
    sink: BatchWriter, writes: Sequence[msg.WriteBatch], locks_s: float
) -> msg.PublishedTogether | msg.NotTogether:
    """Publish batches of several targets at once, and tell how long that took; or whose is in the
    way of the others."""
    assert isinstance(sink, WritesTogether)  # the configuration was checked
    begun = time.monotonic()
    try:
        states = sink.write_together([write.batch for write in writes], locks_s)
    except OneFailed as one:
        why = one.__cause__ or one
        if one.target is None and isinstance(why, TargetRefused | WaitsForRows):
            return msg.NotTogether(tuple(writes), None, reason_of(why))
        first = one.target or writes[0].batch.target
        away = isinstance(why, SinkAway)
        return msg.NotTogether(tuple(writes), failed(first, why), reason_of(why), away)
    took, at_ms = time.monotonic() - begun, time.time_ns() // 1_000_000
    return msg.PublishedTogether(tuple(msg.Published(state, took, at_ms) for state in states))


def tagged(sink: BatchWriter, wanted: msg.TagVersion) -> msg.Tagged:
    """Name a version of a table as a cut's."""
    assert isinstance(sink, Tags)  # the configuration was checked
    if wanted.above is not None:
        sink.untag(wanted.target, wanted.above)
    sink.tag(wanted.target, wanted.version, wanted.number, wanted.keep)
    return msg.Tagged(wanted.target)


def said(sink: BatchWriter, wanted: msg.SayThrough) -> msg.Tagged:
    """Have a table say through when it is complete."""
    assert isinstance(sink, Tags)  # the configuration was checked
    return msg.Tagged(wanted.target, sink.say_through(wanted.target, wanted.moments))


def failed(target: TargetName, error: BaseException) -> msg.Failed:
    """What became of a target's request. Raises what is none of a sink's errors."""
    awaits = error.other if isinstance(error, WaitsForName) else None
    match error:
        case LostRace():
            kind = msg.FailureKind.RACED
        case WaitsForName():
            kind = msg.FailureKind.WAITS
        case SinkUnavailable():
            kind = msg.FailureKind.RETRY
        case TargetRefused():
            kind = msg.FailureKind.REFUSED
        case Straggler():
            kind = msg.FailureKind.STRAGGLER
        case Fenced():
            kind = msg.FailureKind.FENCED
        case _:
            raise error
    return msg.Failed(target, kind, reason_of(error), awaits)

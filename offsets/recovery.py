"""Start position of a partition: a pure function of what the file, broker and log say.

The rules are those of design section 5; each has a test of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import PartitionState, Snapshot
from settings.shell import quoted


class StartAt(Enum):
    """What the configuration may ask for when nothing is recorded."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSET = "offset"


NO_FILE = (
    "no local file: the broker's commit is used, and what the targets held is unknown. If the"
    " catalog was restored too, they lack what came since: stop, and read it again with `binlogd"
    " offsets reset --to earliest`. If a state directory was lost, so were the dead letters in its"
    " files, and jobs: docs/runbook/host-lost.md"
)
"""A target's mark is its own last change's: below the commit it proves nothing."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The log as it is: ``low`` is its first offset, ``high`` the one written next."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Start:
    """The decision: the offset that is read first, where it is from, a remark for the log."""

    offset: int
    origin: str
    remark: str | None = None


class PositionError(Exception):
    """No position can be trusted: reading on would lose changes or skip them unseen."""


class PositionUnknown(PositionError):
    """The broker did not answer in the time that a group member has. It may answer later."""


def start_position(
    source: TopicPartition,
    *,
    recorded: PartitionState | None,
    committed: int | None,
    log: Watermarks,
    configured: StartAt,
    configured_offset: int | None,
    forced: bool = False,
    topic_is_read: bool = False,
    topic_is_new: bool = False,
) -> Start:
    """Decide where to read a partition from.

    ``recorded`` is the local file's position, ``committed`` the broker's (None: there is none, they
    expire). ``configured_offset`` is the offset that ``timestamp`` or ``offset`` came to (None:
    nothing at or after that time, which is the end). ``forced``: the configuration overrules what
    is recorded, this once. ``topic_is_read``: another partition of the topic has a record or a
    commit, so this one was added since: the configured start was for those that there were.
    ``topic_is_new``: the same of a topic that a pattern takes since. Raises PositionError naming
    both sides.
    """
    if forced:
        start = _configured(configured, configured_offset, log)
        start = Start(start.offset, start.origin, "forced by the configuration, this once")
    elif recorded is not None:
        start = _recorded(source, recorded, committed)
    elif committed is not None:
        start = Start(committed, "broker", NO_FILE)
    elif topic_is_read and not (configured is StartAt.OFFSET and configured_offset is not None):
        remark = "the topic is read already: this partition is new, and read from its beginning"
        start = Start(log.low, "new partition", remark)
    elif topic_is_new and not (configured is StartAt.OFFSET and configured_offset is not None):
        remark = f"the topic is new, and what it held below {log.low} is gone from Kafka already"
        start = Start(log.low, "new topic", remark if log.low else None)
    else:
        start = _configured(configured, configured_offset, log)
        if start.offset > log.low:
            remark = (
                "no position is recorded and the group has no commit: what the log holds from "
                f"{log.low} on is passed over"
            )
            start = Start(start.offset, start.origin, remark)
    if not log.low <= start.offset <= log.high:
        raise PositionError(
            f"{source}: the position {start.offset} ({start.origin}) is outside the log, "
            f"which holds {log.low}..{log.high}"
            + (
                ": the changes between are gone from Kafka; `binlogd offsets reset --to earliest "
                "--force` goes on without them"
                if start.offset < log.low
                else f": the topic was truncated or recreated. {OTHER_LOG}"
            )
        )
    return start


def _recorded(source: TopicPartition, recorded: PartitionState, committed: int | None) -> Start:
    if recorded.reset:
        return Start(recorded.frontier, "file", "an operator has reset it: the group follows")
    if committed is None:
        return Start(recorded.frontier, "file")
    floor = recorded.frontier if recorded.confirmed is None else recorded.confirmed
    if committed > recorded.frontier:
        return Start(
            committed,
            "broker",
            f"the broker's commit {committed} is ahead of the file's {recorded.frontier}: "
            "another member or an operator moved on",
        )
    if recorded.confirmed is not None and committed < floor:
        place = f"--topic {quoted(source.topic)} --partition {source.partition}"
        raise PositionError(
            f"{source}: the group was rewound: the broker's commit is {committed}, the file "
            f"recorded {recorded.confirmed} as confirmed. A group alone can't be rewound, the "
            "targets' marks would skip what is read again: "
            f"`binlogd offsets reset {place}` moves "
            f"both, `--to frontier` on from {recorded.frontier}, `--to offset --at {committed}` "
            "back; without --execute it says what it would do"
        )
    return Start(recorded.frontier, "file")


def _configured(configured: StartAt, offset: int | None, log: Watermarks) -> Start:
    match configured:
        case StartAt.EARLIEST:
            return Start(log.low, "configured: earliest")
        case StartAt.LATEST:
            return Start(log.high, "configured: latest")
        case StartAt.TIMESTAMP:
            return Start(log.high if offset is None else offset, "configured: timestamp")
        case StartAt.OFFSET:
            if offset is None:
                raise PositionError("start at offset: no offset is configured for this partition")
            return Start(offset, "configured: offset")


WITHOUT_IT = (
    "`binlogd offsets reset` can't move them to the new one. Where the configuration has left the "
    "embedded broker for another Kafka, `binlogd offsets move` has them go on there. To go on "
    "without it, leave it out of `topics`, or name it in `exclude_topics` where a pattern takes "
    "it. To read the new one, give it a pipeline of its own with another group and other targets; "
    "or remove the offset file and the targets to read all from the start"
)
"""The ways out of a topic that was recreated."""

OTHER_LOG = (
    "Of a topic that was truncated, `binlogd offsets reset --to earliest --force` reads what there "
    "is; one that was recreated is left out of `topics`, or named in `exclude_topics` where a "
    "pattern takes it, and read by a pipeline of its own with another group and other targets"
)
"""The ways out of a log that is another one, or shorter."""


def check_mark(source: TopicPartition, target: str, hwm: int, log: Watermarks) -> None:
    """Refuse a target whose mark lies beyond the log's end: it would skip new changes unseen."""
    if hwm >= log.high:
        raise PositionError(
            f"{source}: {target} holds changes up to {hwm}, but the log ends at {log.high}: the "
            "topic was truncated or recreated, and what it holds below that mark would be skipped. "
            f"`binlogd tables list` shows the marks. {OTHER_LOG}"
        )


# Finds targets that show less than they did: rolled back, restored or recreated. Pure.


class Gap(NamedTuple):
    """Of one lane: the target had everything up to ``recorded``, holds it up to ``found``, and is
    fed from ``start`` on."""

    source: TopicPartition
    recorded: int
    found: int
    start: int

    def __str__(self) -> str:
        stands = "has no mark" if self.found == NO_OFFSET else f"stands at {self.found}"
        return f"{self.source} {stands}, stood at {self.recorded}, and is read from {self.start}"


def gaps(
    recorded: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
) -> list[Gap]:
    """The lanes whose changes between mark and start would never come again.

    ``starts`` has the partitions that are read here, each with the offset that was read first;
    another member checks its own lanes. What is read again from its mark on has no gap.
    """
    out = []
    for source in sorted(recorded.keys() & starts.keys()):
        gap = Gap(source, recorded[source], found.get(source, NO_OFFSET), starts[source])
        if gap.found < gap.recorded and gap.found + 1 < gap.start:
            out.append(gap)
    return out


def ways_out(pipeline: str, target: str, gap: Gap | None = None) -> str:
    """The commands that put such a target right, for the end of a message."""
    rebuild = f"`binlogd tables rebuild {quoted(target)}` reads the whole table again"
    if gap is None:
        return rebuild
    source, at = gap.source, gap.found + 1
    place = f"--topic {quoted(source.topic)} --partition {source.partition} --to offset --at {at}"
    reset = (
        f"`binlogd offsets reset --pipeline {quoted(pipeline)} --table {quoted(target)} {place}`"
    )
    return f"{reset} applies them again where the log still has them, {rebuild}"


def topics_begun(
    recorded: Snapshot, now: Mapping[str, str], named: Collection[str], *, first: bool
) -> dict[str, str]:
    """The topics, with their ids, that were there when the pipeline began, or that it has read.

    ``now``: the topics that are there; ``named``: those that the configuration names. A topic that
    a pattern takes since the ``first`` start comes to them when it is read, not before: until then
    nothing says that its messages were.
    """
    begun = {topic: id_ for topic, id_ in now.items() if first or topic in named}
    return {**recorded.topic_ids, **begun}


def check_topic_ids(recorded: Snapshot, now: Mapping[str, str]) -> None:
    """Refuse a topic that was deleted and recreated: its offsets mean other messages now."""
    for topic, known in recorded.topic_ids.items():
        if topic in now and now[topic] != known:
            raise PositionError(
                f"topic {topic!r} was deleted and recreated since the last run (id {known} then, "
                f"{now[topic]} now): the recorded positions and the targets' marks are of the old "
                f"one (`binlogd offsets show`). {WITHOUT_IT}"
            )

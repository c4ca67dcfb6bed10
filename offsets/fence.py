"""The exactly-once rule of every sink: which writes a target's marks allow. Pure.

A write names the range of each lane that it covers. The target shows up to where it contains each
lane. A late write finds either that it is covered, so that there is nothing to do, or that another
writer moved the marks, so that it must not be published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar

from offsets.counts import CountedWrite, LaneCounts, counts_after
from offsets.marks_text import MarkEntry, read_entries
from offsets.position import NO_OFFSET, EntryStep, TopicPartition, is_job_lane, is_load, still_open

V = TypeVar("V")


class Span(NamedTuple):
    """The range of one lane that a write covers: above ``after``, up to ``through``.

    ``after`` is the lane's high-water mark that the target must show before the write (NO_OFFSET
    where it has none), ``through`` is the one it shows afterwards.
    """

    after: int
    through: int


class Fenced(Exception):
    """Another writer moved the target: what this one knows of its marks is out of date."""


class Straggler(Fenced):
    """A member of the write's own group moved it: by a write that was under way when its partition
    went, or before it heard of that. Or the mark went back, which no writer does: the next look
    at the target shows that."""


class FencedWrite(CountedWrite, Protocol):
    """What the fence asks of a write."""

    @property
    def target(self) -> object:
        """Whom an error names."""
        ...

    @property
    def lanes(self) -> Mapping[TopicPartition, Span]:
        """What it covers."""
        ...

    @property
    def group(self) -> str:
        """The group whose members may write these lanes, empty where there is none."""
        ...

    @property
    def step(self) -> EntryStep | None:
        """What the target holds afterwards of the message of which the write is part."""
        ...

    @property
    def begun(self) -> int:
        """Of that message: how many entries the target must show before the write."""
        ...

    @property
    def ends_lane(self) -> bool:
        """Whether it is the last write of a job, whose lane the marks do not have afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class Marks:
    """Up to where a target contains its lanes.

    ``offsets``: of each lane the high-water mark. ``groups``: whose write moved it there, where
    that is known. ``steps``: how much the target holds of the message above the mark. ``counts``:
    of its changes, those that no table of counts has yet.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    groups: Mapping[TopicPartition, str] = field(default_factory=dict)
    steps: Mapping[TopicPartition, EntryStep] = field(default_factory=dict)
    counts: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)

    def of(self, lane: TopicPartition) -> int:
        """A lane's mark, NO_OFFSET where it has none."""
        return self.offsets.get(lane, NO_OFFSET)

    def cover(self, write: FencedWrite) -> bool:
        """Whether the target holds just this write already: its reply was lost.

        Above that, another writer has gone on: what waits behind this one would be written again.
        """
        if is_amid(write):
            return self._show_step(write)
        if write.ends_lane:
            return self._show_end(write)
        return all(self._holds(lane, s.through) for lane, s in write.lanes.items())

    def show_renaming(self, write: FencedWrite) -> bool:
        """Whether the target shows a renaming, also by the table that it got from another name. The
        marks of that table are below the message's end, even where no more of it follows."""
        return self._show_step(write) or self.cover(write)

    def are_past(self, write: FencedWrite) -> bool:
        """Whether another target, by its marks, is past the write's statement."""
        ((lane, _),) = write.lanes.items()
        if self.of(lane) >= place_of(write):
            return True
        shown, step = self.steps.get(lane), write.step
        if shown is None or step is None:
            return False
        return shown.offset == step.offset and shown.done >= step.done

    def check(self, write: FencedWrite) -> None:
        """Raise Fenced unless every lane stands where the write begins; Straggler where those that
        don't were all moved by the write's own group, or back.

        A lane that is covered while another is not is fenced too: its rows in the write may be
        older than what the table holds, and writing them would bring old rows back.
        """
        check_jobs(self.offsets, write)
        own: str | None = None
        for lane, span in write.lanes.items():
            mark, by = self.of(lane), self.groups.get(lane, "")
            done = self._done(write, lane)
            if mark == span.after and done == write.begun:
                continue
            said = f"{write.target}: {self._elsewhere(write, lane)}"
            ahead = mark > span.after or (mark == span.after and done > write.begun)
            if ahead and (not by or by != write.group):
                raise Fenced(f"{said} (moved by group {by})" if by else said)
            own = own or said
        if own is not None:
            raise Straggler(own)

    def after(self, write: FencedWrite, waits: bool = False) -> Marks:
        """The marks once the write is published; those that it moves are its group's.

        ``waits``: each of them is short by one, for something of the write has yet to happen.
        """
        moved = {lane: span.through for lane, span in write.lanes.items()}
        if waits:
            moved = dict.fromkeys(moved, place_of(write) - 1)
        job = any(map(is_job_lane, moved)) and not write.ends_lane
        kept = dict(self.offsets) if job else of_streams(self.offsets)
        moved = moved if job else dict(of_streams(moved))
        offsets = {**kept, **moved}
        by = {
            lane: write.group
            for lane, mark in moved.items()
            if write.step is not None or mark != self.offsets.get(lane)
        }
        steps = still_open(self.steps, offsets)
        if write.step is not None and is_amid(write) and not waits:
            steps |= dict.fromkeys(write.lanes, write.step)
        groups = self.groups if job else of_streams(self.groups)
        moves = {lane: (self.of(lane), at) for lane, at in moved.items() if not is_job_lane(lane)}
        counts = counts_after(self.counts, write, moves)
        return Marks(offsets, {**groups, **by}, steps, counts)

    @classmethod
    def renamed_by(cls, write: FencedWrite) -> Marks:
        """The marks that come with a table's new name: of the renaming's lane alone. More of its
        message may follow under that name, which only that one's target knows."""
        ((lane, _),) = write.lanes.items()
        amid = {} if write.step is None else {lane: write.step}
        return cls({lane: place_of(write) - len(amid)}, {lane: write.group}, amid)

    def at(self, offsets: Mapping[TopicPartition, int]) -> Marks:
        """These marks moved by an operator. What is applied again from a lower one on is the whole
        message again."""
        kept = {
            lane: step
            for lane, step in self.steps.items()
            if offsets.get(lane, NO_OFFSET) >= self.of(lane)
        }
        return Marks(offsets, self.groups, still_open(kept, offsets), self.counts)

    def lifted(self, other: Marks) -> Marks:
        """These marks, none of them below the other's; as they are, where none is."""
        others = of_streams(other.offsets).items()
        higher = {lane: at for lane, at in others if at > self.of(lane)}
        offsets = {**self.offsets, **higher}
        groups = {**self.groups, **{lane: other.groups.get(lane, "") for lane in higher}}
        known = {lane: by for lane, by in groups.items() if by}
        return Marks(offsets, known, still_open(self.steps, offsets), self.counts)

    def with_name(self, others: Marks) -> Marks:
        """These marks and those that came with the table's name, steps included. What is counted
        stays with the name that the source's table had: the one that it left has it."""
        lifted = self.lifted(others)
        steps = still_open({**self.steps, **others.steps}, lifted.offsets)
        return replace(lifted, steps=steps, counts=others.counts)

    def text(self) -> str:
        """As sinks keep them (``offsets.marks_text``), sorted: equal marks are equal text."""
        entries = (
            MarkEntry(
                lane, self.of(lane), self.groups.get(lane, ""), self.steps.get(lane),
                self.counts.get(lane),
            )
            for lane in sorted(self.offsets.keys() | self.steps.keys())
        )  # fmt: skip
        return json.dumps({str(e.lane): e.as_json() for e in entries}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Marks:
        """Read back what ``text`` wrote."""
        read = list(read_entries(text))
        return cls(
            {entry.lane: entry.mark for entry in read},
            {entry.lane: entry.group for entry in read if entry.group},
            {entry.lane: entry.step for entry in read if entry.step is not None},
            {entry.lane: entry.counts for entry in read if entry.counts is not None},
        )

    def _holds(self, lane: TopicPartition, through: int) -> bool:
        """What a job writes under a number was settled before: a higher mark holds it as well."""
        mark = self.of(lane)
        return mark >= through if is_job_lane(lane) else mark == through

    def _show_end(self, write: FencedWrite) -> bool:
        """The job's lane is gone, and what came with that is there."""
        return all(
            lane not in self.offsets if is_job_lane(lane) else self.of(lane) >= span.through
            for lane, span in write.lanes.items()
        )

    def _show_step(self, write: FencedWrite) -> bool:
        step = write.step
        shown = (self.steps.get(lane) for lane in write.lanes)
        return all(s is not None and step is not None and s[:2] == step[:2] for s in shown)

    def _done(self, write: FencedWrite, lane: TopicPartition) -> int:
        """How many entries of the write's message the lane has."""
        shown = self.steps.get(lane)
        return shown.done if shown is not None and shown.offset <= _reach(write, lane) else 0

    def _elsewhere(self, write: FencedWrite, lane: TopicPartition) -> str:
        mark, after = self.of(lane), write.lanes[lane].after
        if mark != after:
            return f"lane {lane} stands at {mark}, expected {after}"
        shown = self.steps.get(lane)
        at = _reach(write, lane) if shown is None else shown.offset
        done = self._done(write, lane)
        return f"lane {lane} is at entry {done} of offset {at}, expected {write.begun}"


def check_jobs(marks: Mapping[TopicPartition, int], write: FencedWrite) -> None:
    """Raise Fenced where rows of a job would come after changes of a log.

    A loaded row never overwrites: all of them are there before the first change of the stream, and
    none comes after it, however late a write of the job is. A repair's row does overwrite: its
    write names each lane of the stream where that stands, so nothing has come in between.
    """
    streams = of_streams(marks)
    if streams and any(map(is_load, write.lanes)):
        changes = ", ".join(map(str, sorted(streams)))
        raise Fenced(f"{write.target}: holds changes of {changes}: a loaded row never overwrites")


def of_streams(marks: Mapping[TopicPartition, V]) -> Mapping[TopicPartition, V]:
    """What is known of lanes, without those of jobs."""
    if not any(map(is_job_lane, marks)):
        return marks
    return {lane: at for lane, at in marks.items() if not is_job_lane(lane)}


def is_amid(write: FencedWrite) -> bool:
    """Whether a write ends inside its message: the mark is below that, the step says how far."""
    step = write.step
    return step is not None and all(span.through < step.offset for span in write.lanes.values())


def place_of(write: FencedWrite) -> int:
    """The offset of a write of one message."""
    ((_, span),) = write.lanes.items()
    return span.through if write.step is None else write.step.offset


def place_text(write: FencedWrite) -> str:
    """The same for names that come of a statement: two in one message get two."""
    offset, step = place_of(write), write.step
    return str(offset) if step is None else f"{offset}_{step.done}"


def _reach(write: FencedWrite, lane: TopicPartition) -> int:
    return write.lanes[lane].through if write.step is None else write.step.offset

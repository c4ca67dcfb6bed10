"""``binlogd dead-letters replay``: appends the records of letters to their partitions again.

Decision 28 explains the procedure and its refusals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from daemon.config.pipeline_config import PipelineConfig, pipelines_of
from daemon.operations.engine.here import Here
from daemon.operations.engine.port import Plan
from daemon.operations.replay.conflicts import REPLAYED, Candidate
from daemon.operations.replay.replay_plan import Planner, ReplayPlan
from daemon.state.command_schemas import CommandSchemas, command_schemas
from daemon.state.control import ControlError
from daemon.state.dead_letters.files import add_mark
from daemon.state.dead_letters.index import (
    FILES,
    LetterFilter,
    Stored,
    Unreadable,
    read_index,
)
from daemon.state.edits import EditRefused
from offsets.position import TopicPartition
from settings.exit import Exit
from settings.shell import quoted
from sources.base.letter import MARK, Mark
from sources.base.port import (
    Appender,
    AppendRefused,
    Outgoing,
)

AT_ONCE = 500
"""Records in one transaction. Readers wait for its end."""

PLANS = 3
"""Plans that other writers may overtake before the command gives up."""


class Replay:
    """One replay."""

    def __init__(self, here: Here, pipeline: str, wanted: LetterFilter, force: bool) -> None:
        self._here = here
        self._config = here.config
        self._mine = PipelineConfig(here.config, pipeline)
        self._pipeline = pipeline
        self._section = here.config.pipeline[pipeline]
        self._wanted = wanted
        self._force = force
        self._done: set[str] = set()
        self._places: dict[TopicPartition, list[int]] = {}

    def dry(self) -> Plan:
        """What would be replayed."""
        with command_schemas(self._mine.registry) as schemas:
            _, plan = self._plan(schemas)
        good = self._allowed(plan)
        lines = (f"{c.place} would be appended to {c.source}{_rows(c)}" for c in good)
        status, left = self._left(plan, len(good))
        if status is Exit.UNUSABLE:
            return Plan(lines=tuple(lines), refusals=left)
        return Plan(lines=tuple(lines), notes=left, nothing=not good, status=status)

    def execute(self) -> Exit:
        """Append the allowed records, and mark their letters. Raises EditRefused, AppendFailed."""
        # First: this ends the transaction of an earlier run, so the plan sees its outcome.
        try:
            appender = self._mine.source().appender()
        except AppendRefused as error:
            raise EditRefused(str(error)) from error
        with command_schemas(self._mine.registry) as schemas:
            for _ in range(PLANS):
                planner, plan = self._plan(schemas)
                self._mark_found(appender, plan)
                if self._append(appender, planner, plan):
                    status, left = self._left(plan, len(self._done))
                    self._here.note(*left)
                    return status
        self._here.note("others write the same rows meanwhile: try again when the source is quiet")
        return Exit.PIPELINE_FAILED

    # --- planning

    def _plan(self, schemas: CommandSchemas | None) -> tuple[Planner, ReplayPlan]:
        try:
            index = read_index(self._mine)
        except Unreadable as error:
            raise ControlError(str(error)) from error
        self._here.note(*index.damage)
        others = {
            name: other.selection
            for name, other in pipelines_of(self._config).items()
            if name != self._pipeline
        }
        planner = Planner(self._mine, others, index, schemas)
        # A filter selects open letters only; a named letter may be replayed once more.
        picked = [s for s in index.pick(self._wanted) if self._wanted.places or s.mark is None]
        return planner, planner.plan([s for s in picked if s.letter.id.place not in self._done])

    def _allowed(self, plan: ReplayPlan) -> list[Candidate]:
        return [c for c in plan.candidates if not c.problems and (self._force or not c.doubts)]

    # --- doing it

    def _append(self, appender: Appender, planner: Planner, plan: ReplayPlan) -> bool:
        """Whether all allowed records were appended. False: others wrote in between."""
        good = self._allowed(plan)
        good.sort(key=lambda candidate: (candidate.source, candidate.standing))
        for begin in range(0, len(good), AT_ONCE):
            some = good[begin : begin + AT_ONCE]
            offsets = appender.append(
                [_outgoing(candidate) for candidate in some],
                lambda offsets, some=some: self._may(planner, plan, some, offsets),  # type: ignore[misc]
                lambda offsets, some=some: self._topic_marks(plan, some, offsets),  # type: ignore[misc]
            )
            if offsets is None:
                return False
            for candidate, offset in zip(some, offsets, strict=True):
                self._replayed(plan, candidate, offset)
        return True

    def _may(
        self, planner: Planner, plan: ReplayPlan, some: Sequence[Candidate], offsets: Sequence[int]
    ) -> bool:
        """Whether nothing came in between, up to the offsets that the records have now."""
        for candidate, offset in zip(some, offsets, strict=True):
            self._places.setdefault(candidate.source, []).append(offset)
        if self._force:
            return True
        found = planner.overtaken(some, plan.ends, self._places)
        return not found

    def _replayed(self, plan: ReplayPlan, candidate: Candidate, offset: int) -> None:
        at = f"{candidate.source}:{offset}"
        for stored in plan.letters[candidate.place]:
            if stored.store == FILES:
                self._file_mark(Mark.now(stored.letter.id, at))
        self._done.add(candidate.place)
        self._here.say(f"{candidate.place} is in the log again: {at}")

    def _file_mark(self, mark: Mark) -> None:
        """If this fails, the next run finds the replayed record in the log."""
        try:
            add_mark(self._config.daemon.state_dir, mark)
        except OSError as error:
            self._here.note(f"{mark.id.place} can't be marked as replayed: {error}")

    def _topic_marks(
        self, plan: ReplayPlan, some: Sequence[Candidate], offsets: Sequence[int]
    ) -> list[Outgoing]:
        """Marks of letters in a topic: they are committed in the transaction, or not at all."""
        return [
            mark_record(stored, f"{candidate.source}:{offset}")
            for candidate, offset in zip(some, offsets, strict=True)
            for stored in plan.letters[candidate.place]
            if stored.store != FILES
        ]

    def _mark_found(self, appender: Appender, plan: ReplayPlan) -> None:
        """Mark what an earlier run replayed but could not mark."""
        lost = [
            (stored, f"{candidate.source}:{candidate.replayed_at[-1]}")
            for candidate in plan.candidates
            if candidate.replayed_at
            for stored in plan.letters[candidate.place]
            if stored.state == "open"
        ]
        for stored, at in lost:
            if stored.store == FILES:
                self._file_mark(Mark.now(stored.letter.id, at))
        marks = [mark_record(stored, at) for stored, at in lost if stored.store != FILES]
        if marks:
            appender.append((), lambda _: True, lambda _: marks)

    # --- reporting

    def _left(self, plan: ReplayPlan, done: int) -> tuple[Exit, tuple[str, ...]]:
        """What is left, and the status. 0: nothing, 1: some, 2: nothing was done."""
        left = [c for c in plan.candidates if c.problems or (c.doubts and not self._force)]
        lines = [f"refused: {c.place}: {why}" for c in left for why in (*c.problems, *c.doubts)]
        if any(not candidate.problems for candidate in left):
            lines.append(
                "--force replays them nevertheless, over what came later. In the right order a "
                "table gets them when it is read again from there, while the log has it:"
            )
            lines += self._resets(plan, left)
        if not plan.candidates and not done:
            return Exit.UNUSABLE, (*lines, "no dead letter is meant by that")
        if not left:
            return Exit.OK, tuple(lines)
        return Exit.PIPELINE_FAILED if done else Exit.UNUSABLE, tuple(lines)

    def _resets(self, plan: ReplayPlan, left: Sequence[Candidate]) -> list[str]:
        """Commands that read the tables again, each from its oldest letter on."""
        oldest: dict[tuple[TopicPartition, str], int] = {}
        for candidate in left:
            if not candidate.problems:
                at = candidate.record.offset
                for target in _targets(plan, candidate):
                    place = (candidate.source, target)
                    oldest[place] = min(at, oldest.get(place, at))
        which = f" --pipeline {quoted(self._pipeline)}" if len(self._config.pipeline) > 1 else ""
        return [
            f"binlogd offsets reset --to offset --at {at} --topic {quoted(source.topic)} "
            f"--partition {source.partition} --table {quoted(target)}{which}"
            for (source, target), at in sorted(oldest.items())
        ]


def _targets(plan: ReplayPlan, candidate: Candidate) -> Iterable[str]:
    """The targets that lack the record: all of them where a letter names none."""
    stored = {each.letter.id.target for each in plan.letters[candidate.place]}
    return (target for target in candidate.keys if target in stored or None in stored)


def _outgoing(candidate: Candidate) -> Outgoing:
    source, record = candidate.source, candidate.record
    headers = [*record.headers, (REPLAYED, candidate.place.encode())]
    return Outgoing(source.topic, source.partition, record.key, record.value, headers)


def mark_record(stored: Stored, at: str | None) -> Outgoing:
    """The record that marks a letter in a topic. ``at``: see ``Mark``."""
    topic = stored.store.removeprefix("topic:")
    said = json.dumps(Mark.now(stored.letter.id, at).document)
    return Outgoing(topic, None, None, None, [(MARK, said)])


def _rows(candidate: Candidate) -> str:
    """The record's first few rows, for people."""
    shown = [
        f"{target} {', '.join(key)}"
        for target, keys in sorted(candidate.keys.items())
        for key in sorted(keys or ())[:3]
    ]
    return f": {'; '.join(shown)}" if shown else ""

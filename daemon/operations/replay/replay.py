"""``binlogd dead-letters replay``: appends the records of letters to their partitions again.

Decision 28 explains the procedure and its refusals.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence

from daemon.config.config import Config
from daemon.operations.replay.conflicts import REPLAYED, Candidate
from daemon.operations.replay.replay_plan import NotPlanned, Plan, Planner
from daemon.state.dead_letters.files import add_mark
from daemon.state.dead_letters.index import FILES, Stored, Unreadable, Wanted, indexes
from offsets.position import TopicPartition
from settings.exit import Exit
from sources.base.letter import MARK, Mark
from sources.base.port import (
    Appender,
    AppendFailed,
    AppendRefused,
    LogGone,
    LogUnreadable,
    Outgoing,
)
from sources.opening import open_source

AT_ONCE = 500
"""Records in one transaction. Readers wait for its end."""

PLANS = 3
"""Plans that other writers may overtake before the command gives up."""


def run_replay(config: Config, pipeline: str, wanted: Wanted, execute: bool, force: bool) -> int:
    """Show what would be replayed, or replay it. Returns the exit status."""
    try:
        run = Replay(config, pipeline, wanted, force)
        return run.execute() if execute else run.dry()
    except (Unreadable, NotPlanned, AppendFailed, LogGone, LogUnreadable) as error:
        print(f"binlogd: {config.redactor.text(str(error))}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value


class Replay:
    """One run of the command."""

    def __init__(self, config: Config, pipeline: str, wanted: Wanted, force: bool) -> None:
        self._config = config
        self._pipeline = pipeline
        self._section = config.pipeline[pipeline]
        self._wanted = wanted
        self._force = force
        self._done: set[str] = set()
        self._places: dict[TopicPartition, list[int]] = {}

    def dry(self) -> int:
        """Show what would be replayed."""
        _, plan = self._plan()
        good = self._allowed(plan)
        for candidate in good:
            print(f"{candidate.place} would be appended to {candidate.source}{_rows(candidate)}")
        if good:
            print("nothing was changed: --execute does it")
        return self._end(plan, len(good))

    def execute(self) -> int:
        """Append the allowed records, and mark their letters."""
        # First: this ends the transaction of an earlier run, so the plan sees its outcome.
        try:
            appender = open_source(self._config, self._pipeline).appender()
        except AppendRefused as error:
            self._complain(str(error))
            return Exit.UNUSABLE.value
        for _ in range(PLANS):
            planner, plan = self._plan()
            self._mark_found(appender, plan)
            if self._append(appender, planner, plan):
                return self._end(plan, len(self._done))
        self._complain("others write the same rows meanwhile: try again when the source is quiet")
        return Exit.PIPELINE_FAILED.value

    # --- planning

    def _plan(self) -> tuple[Planner, Plan]:
        (index,) = indexes(self._config, [self._pipeline])
        planner = Planner(self._config, self._pipeline, index)
        # A filter selects open letters only; a named letter may be replayed once more.
        picked = [s for s in index.pick(self._wanted) if self._wanted.places or s.mark is None]
        return planner, planner.plan([s for s in picked if s.letter.id.place not in self._done])

    def _allowed(self, plan: Plan) -> list[Candidate]:
        return [c for c in plan.candidates if not c.problems and (self._force or not c.doubts)]

    # --- doing it

    def _append(self, appender: Appender, planner: Planner, plan: Plan) -> bool:
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
        self, planner: Planner, plan: Plan, some: Sequence[Candidate], offsets: Sequence[int]
    ) -> bool:
        """Whether nothing came in between, up to the offsets that the records have now."""
        for candidate, offset in zip(some, offsets, strict=True):
            self._places.setdefault(candidate.source, []).append(offset)
        if self._force:
            return True
        found = planner.overtaken(some, plan.ends, self._places)
        return not found

    def _replayed(self, plan: Plan, candidate: Candidate, offset: int) -> None:
        at = f"{candidate.source}:{offset}"
        for stored in plan.letters[candidate.place]:
            if stored.store == FILES:
                self._file_mark(Mark.now(stored.letter.id, at))
        self._done.add(candidate.place)
        print(f"{candidate.place} is in the log again: {at}")

    def _file_mark(self, mark: Mark) -> None:
        """If this fails, the next run finds the replayed record in the log."""
        try:
            add_mark(self._config.daemon.state_dir, mark)
        except OSError as error:
            self._complain(f"{mark.id.place} can't be marked as replayed: {error}")

    def _topic_marks(
        self, plan: Plan, some: Sequence[Candidate], offsets: Sequence[int]
    ) -> list[Outgoing]:
        """Marks of letters in a topic: they are committed in the transaction, or not at all."""
        return [
            _mark_record(stored, f"{candidate.source}:{offset}")
            for candidate, offset in zip(some, offsets, strict=True)
            for stored in plan.letters[candidate.place]
            if stored.store != FILES
        ]

    def _mark_found(self, appender: Appender, plan: Plan) -> None:
        """Mark what an earlier run replayed but could not mark."""
        lost = [
            (stored, f"{candidate.source}:{candidate.replayed_at[-1]}")
            for candidate in plan.candidates
            if candidate.replayed_at
            for stored in plan.letters[candidate.place]
            if stored.mark is None
        ]
        for stored, at in lost:
            if stored.store == FILES:
                self._file_mark(Mark.now(stored.letter.id, at))
        marks = [_mark_record(stored, at) for stored, at in lost if stored.store != FILES]
        if marks:
            appender.append((), lambda _: True, lambda _: marks)

    # --- reporting

    def _end(self, plan: Plan, done: int) -> int:
        """Report what is left. 0: nothing, 1: some, 2: nothing was done."""
        left = [c for c in plan.candidates if c.problems or (c.doubts and not self._force)]
        for candidate in left:
            for reason in (*candidate.problems, *candidate.doubts):
                self._complain(f"refused: {candidate.place}: {reason}")
        if any(not candidate.problems for candidate in left):
            self._complain(
                "--force replays them all the same, over what came later. In the right order a "
                "table gets them when it is read again from there, while the log has it:"
            )
            for command in self._resets(plan, left):
                self._complain(command)
        if not plan.candidates and not done:
            self._complain("no dead letter is meant by that")
            return Exit.UNUSABLE.value
        if not left:
            return Exit.OK.value
        return Exit.PIPELINE_FAILED.value if done else Exit.UNUSABLE.value

    def _resets(self, plan: Plan, left: Sequence[Candidate]) -> list[str]:
        """Commands that read the tables again, each from its oldest letter on."""
        oldest: dict[tuple[TopicPartition, str], int] = {}
        for candidate in left:
            if not candidate.problems:
                at = candidate.record.offset
                for target in _targets(plan, candidate):
                    place = (candidate.source, target)
                    oldest[place] = min(at, oldest.get(place, at))
        which = f" --pipeline {self._pipeline}" if len(self._config.pipeline) > 1 else ""
        return [
            f"binlogd offsets reset --to offset --at {at} --topic {source.topic} "
            f"--partition {source.partition} --table {shlex.quote(target)}{which}"
            for (source, target), at in sorted(oldest.items())
        ]

    def _complain(self, line: str) -> None:
        print(f"binlogd: {self._config.redactor.text(line)}", file=sys.stderr)


def _targets(plan: Plan, candidate: Candidate) -> Iterable[str]:
    """The targets that lack the record: all of them where a letter names none."""
    stored = {each.letter.id.target for each in plan.letters[candidate.place]}
    return (target for target in candidate.keys if target in stored or None in stored)


def _outgoing(candidate: Candidate) -> Outgoing:
    source, record = candidate.source, candidate.record
    headers = [*record.headers, (REPLAYED, candidate.place.encode())]
    return Outgoing(source.topic, source.partition, record.key, record.value, headers)


def _mark_record(stored: Stored, at: str) -> Outgoing:
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

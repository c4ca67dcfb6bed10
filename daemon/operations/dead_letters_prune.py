"""``binlogd dead-letters prune``: removes old dead letters from the files of the state directory.

Also those that were not replayed. So it is for letters that nobody will replay any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import structlog

from actors.dead_letters import WINDOW_S
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params, say_plan
from daemon.operations.engine.port import Plan
from daemon.state.dead_letters.files import add_marks, letter_files, read_files, read_marks
from daemon.state.dead_letters.index import parse_since
from daemon.state.dead_letters.lines import has_done, remove_done
from daemon.state.edits import EditRefused, chosen_pipeline
from sources.base.letter import LetterId, Mark


@dataclass(frozen=True, slots=True)
class Old:
    """The letters of a pipeline that were stored before a time."""

    folder: Path
    pipeline: str
    before: datetime

    def find(self, damage: list[str]) -> dict[LetterId, bool]:
        """Each, and whether it was replayed. Raises OSError."""
        replayed = {mark.id for mark in read_marks(self.folder, self.pipeline, damage)}
        letters = read_files(self.folder, self.pipeline, damage)
        return {each.id: each.id in replayed for each in letters if each.when < self.before}

    def remove(self) -> int:
        """Remove them; nobody may append meanwhile. Gives how many lines went. Raises OSError.

        The open ones are marked as discarded first: the mark stays, and with it that their rows are
        missing.
        """
        found, before_s, gone = self.find([]), self.before.timestamp(), 0
        old, lost = found.keys(), (letter for letter, done in found.items() if not done)
        try:
            add_marks(self.folder, self.pipeline, (Mark.now(each, None) for each in lost))
            for path in letter_files(self.folder, self.pipeline):
                if has_done(path, old, before_s):
                    gone += remove_done(path, old, before_s)
        finally:
            log = structlog.get_logger().bind(pipeline=self.pipeline, actor="supervisor")
            log.warning("dead_letters_removed", letters=gone)
        return gone


class PruneParams(Params):
    """How old, and of which pipeline."""

    older_than: Annotated[
        str, Option("Stored before: an age such as 30d, or 2026-01-31T00:00:00Z.", metavar="AGE")
    ]
    pipeline: Annotated[str | None, Option("Which pipeline; not needed where there is one.")] = None


class PruneOperation(Operation[PruneParams]):
    """Remove dead letters from files by their age, replayed or not. The pipeline stands meanwhile.

    Back the files up first if their records may still be needed: the log may have lost them.
    """

    words, params, example = "dead-letters prune", PruneParams, "--older-than 90d"
    loses = True

    def plan(self, params: PruneParams, here: Here) -> Plan:
        """How many would be removed, and how many of them were never replayed."""
        chosen, damage = _chosen(params, here), list[str]()
        found = chosen.find(damage)
        name, replayed = chosen.pipeline, sum(found.values())
        document = {"pipeline": name, "open": len(found) - replayed, "replayed": replayed}
        if here.config.pipeline[name].dead_letter_topic is not None:
            damage.append("letters in the topic stay: they expire by its retention.ms")
        which = f"{name}: dead letters in files, older than {params.older_than}"
        line = f"{which}: {len(found)}, of which {len(found) - replayed} were never replayed"
        return Plan((), (line,), document, notes=tuple(damage), nothing=not found)

    def step(self, params: PruneParams, here: Here) -> Done:
        """Say it, and remove them while the pipeline stands still."""
        plan, chosen = self.plan(params, here), _chosen(params, here)
        say_plan(plan, here)
        gone = 0 if plan.nothing else here.hold(chosen.pipeline, chosen.remove)
        here.say(f"{chosen.pipeline}: {gone} removed")
        return Done({**plan.document, "removed": gone})


def _chosen(params: PruneParams, here: Here) -> Old:
    """The letters that the parameters name. Raises EditRefused."""
    name, now = chosen_pipeline(here.config.pipeline, params.pipeline), datetime.now(UTC)
    try:
        before = parse_since(params.older_than, now)
    except (ValueError, OverflowError) as error:
        raise EditRefused(f"--older-than: {error}") from error
    if before > now - timedelta(seconds=WINDOW_S):
        raise EditRefused(
            "--older-than: an hour at least, as max_bad_records_per_hour counts younger letters"
        )
    return Old(here.config.daemon.state_dir, name, before)

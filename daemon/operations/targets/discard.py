"""``binlogd tables discard``: gives up stored data that can't reach its target any more.

That is the spill of a target without a route, or a reset of its marks that can't be carried out.
The spill of a target that still gets changes is refused: later changes would be written behind the
gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import structlog

from changes.formats import TopicFormats
from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig, pipelines_of
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Params
from daemon.operations.engine.port import Plan
from daemon.operations.targets.retry import TARGET
from daemon.state.edits import EditRefused
from daemon.state.spills.file import Found, SpillError, SpillFolder
from daemon.state.spills.spills import check_marks, open_spills
from offsets.snapshot import UNWRITTEN, Snapshot, TargetMark, noted
from settings.counted import counted
from settings.shell import quoted
from sources.base.consumed import tables_of


@dataclass(frozen=True, slots=True)
class Discard:
    """An operator's request. It is a ``daemon.state.edits.Change``, for a stopped pipeline, under
    the state directory's lock."""

    pipeline: PipelineConfig
    target: str

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        """Delete the spill and return the snapshot without what is given up. Raises EditRefused."""
        found, _ = self.look(snapshot)
        mark = snapshot.targets.get(self.target) or TargetMark(None, {})
        mark = replace(mark, moves=None)
        if found is not None or self._has_lost_its_spill(snapshot):
            lost = "messages" if found is None else _size(found)
            what = f"{UNWRITTEN}{lost} of its spill were discarded"
            differ = noted(mark.rows_may_differ, [what])
            mark = replace(mark, rows_may_differ=differ)
        if found is not None:
            try:
                self._folder().drop(found.target)
            except OSError as error:
                raise EditRefused(f"{self.target}: its spill: {error}") from error
        spills = {name: kept for name, kept in snapshot.spills.items() if name != self.target}
        log: Any = structlog.get_logger().bind(pipeline=self.pipeline.name, actor="supervisor")
        messages = 0 if found is None else found.state.messages
        log.warning("discarded", target=self.target, messages=messages)
        return replace(snapshot, spills=spills, targets={**snapshot.targets, self.target: mark})

    def look(self, snapshot: Snapshot) -> tuple[Found | None, list[str]]:
        """The spill that would be deleted, and lines about all that would be given up. Raises
        EditRefused."""
        if self.target in snapshot.rebuilding:
            raise EditRefused(
                f"{self.target} is being rebuilt, and its spill goes with that: `binlogd tables "
                f"rebuild {quoted(self.target)} --cancel` gives the rebuild up"
            )
        found = self._spill(snapshot)
        lines: list[str] = []
        if found is not None:
            what = "away" if found.away else "in quarantine"
            lines.append(f"{self.target}: {what}: {found.reason}")
            lines.append(f"would be lost for good: {_size(found)}, which no route wants any more")
        elif self._has_lost_its_spill(snapshot):
            lines.append(
                f"{self.target}: its spill is listed and not there, as where an earlier discard "
                "did not come to its end; no route leads to it: the list forgets it"
            )
        mark = snapshot.targets.get(self.target)
        if mark is not None and mark.moves is not None:
            at = ", ".join(
                f"{source} to {to}"
                for source, to in sorted({**mark.moves.lower, **mark.moves.lift}.items())
            )
            lines.append(f"would be given up: a reset of its marks, {at}; they stay as they are")
        if not lines:
            raise EditRefused(f"{self.target}: nothing is kept for it that could be discarded")
        return found, lines

    def _has_lost_its_spill(self, snapshot: Snapshot) -> bool:
        """Listed, and nothing leads there any more: after a discard that broke off behind the
        file's end no start goes on, and a repeated one must."""
        name = TargetName.parse(self.target)
        listed = self.target in snapshot.spills and not self.pipeline.router().reaches(name)
        return listed and not any(spill.target == name for spill in self._folder().held())

    def _folder(self) -> SpillFolder:
        return SpillFolder(self.pipeline.state_dir, self.pipeline.name)

    def _spill(self, snapshot: Snapshot) -> Found | None:
        format_ = self.pipeline.format(TopicFormats(snapshot.formats))
        try:
            held = self._folder().held()
            found = next((spill for spill in held if str(spill.target) == self.target), None)
            if found is None:
                return None
            check_marks((found,), format_)
        except (SpillError, OSError) as error:
            raise EditRefused(str(error)) from error
        router = self.pipeline.router()
        _, unwanted = open_spills((found,), format_, router)
        # A message that can't be read with the present options does not show its routes.
        readable = bool(tables_of(format_, found.first.value)[1])
        if not unwanted or (not readable and router.reaches(found.target)):
            word = quoted(self.target)
            raise EditRefused(
                f"{self.target} is still fed, and what comes next would be written behind a hole "
                f"of {_size(found)}: `binlogd tables retry {word}` writes them, `binlogd tables "
                f"rebuild {word}` reads the whole table again. To give the table up, exclude it in "
                f"the configuration: `binlogd reload --discard {word}`"
            )
        return found


def _size(found: Found) -> str:
    state = found.state
    lanes = ", ".join(f"{s} {first}..{last}" for s, (first, last) in sorted(state.lanes.items()))
    return f"{counted(state.messages, 'message')} ({state.bytes} bytes: {lanes})"


class DiscardParams(Params):
    """Which target."""

    target: Annotated[str, TARGET]


class DiscardOperation(Operation[DiscardParams]):
    """Give up what is kept for a target that no route wants any more, or a reset that can't be."""

    words, params, example = "tables discard", DiscardParams, "lake.shop.gone"
    loses = True

    def plan(self, params: DiscardParams, here: Here) -> Plan:
        """What would be lost."""
        discard, snapshot = self._wanted(params.target, here)
        return Plan(lines=tuple(discard.look(snapshot)[1]))

    def step(self, params: DiscardParams, here: Here) -> Done:
        """Say it, and give it up."""
        discard, snapshot = self._wanted(params.target, here)
        here.say(*discard.look(snapshot)[1])
        here.edit(discard.pipeline.name, discard)
        here.say(f"{params.target}: what was kept for it is discarded")
        return Done()

    def _wanted(self, target: str, here: Here) -> tuple[Discard, Snapshot]:
        """The pipeline that owns the target, by snapshots and by existing spills."""
        known: set[str] = set()
        for name, pipeline in pipelines_of(here.config).items():
            snapshot = here.snapshot(name)
            try:
                held = SpillFolder(pipeline.state_dir, name).held()
            except (SpillError, OSError) as error:
                raise EditRefused(str(error)) from error
            names = {*snapshot.targets, *snapshot.spills, *snapshot.rebuilds}
            names |= {str(spill.target) for spill in held}
            if target in names:
                return Discard(pipeline, target), snapshot
            known |= names
        listed = f"; there are: {', '.join(sorted(known)[:20])}" if known else ""
        raise EditRefused(f"{target}: unknown, nothing of it is recorded{listed}")

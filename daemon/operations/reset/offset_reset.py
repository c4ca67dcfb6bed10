"""``binlogd offsets reset``: plans with the source's answers, and carries the plan out.

Offline, the new positions are recorded under the state directory's lock and the group's commit
follows. The next start moves the targets' marks before it reads anything. In a running daemon an
edit of the pipeline does the same (``daemon/app/edits.py``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from changes.model.model import Mode, TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.operation import Option, Params
from daemon.state.edits import EditRefused
from offsets.position import TopicPartition
from offsets.recovery import PositionError, check_topic_ids
from offsets.reset import ResetPlan, ResetRequest, ResetSurroundings, ResetTo, plan_reset
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.counted import counted
from sources.base.port import NotAnswered, Questions, Source, TopicMissing, committed

MOST_NAMED = 20
"""Topics that a refusal names."""


class ResetParams(Params):
    """From where what is read again. Raises EditRefused."""

    to: Annotated[str, Option("earliest, latest, timestamp, offset, or frontier (the group's).")]
    at: Annotated[str | None, Option("The offset, or the timestamp with its zone (ISO 8601).")] = (
        None
    )
    pipeline: Annotated[str | None, Option("Which pipeline; not needed where there is one.")] = None
    topic: Annotated[str | None, Option("One of its topics alone.")] = None
    partition: Annotated[int | None, Option("One partition alone.")] = None
    table: Annotated[str | None, Option("One target alone, as tables list names it.")] = None
    force: Annotated[bool, Option("Do it though changes are lost by it.")] = False

    def model_post_init(self, _: Any) -> None:
        """Refuse what belongs to no place in a log."""
        known = [place.value for place in ResetTo]
        if self.to not in known:
            raise EditRefused(f"--to {self.to}: one of {', '.join(known)} is required")
        takes = self.to in ("timestamp", "offset")
        if takes != (self.at is not None):
            raise EditRefused(f"--to {self.to} {'needs' if takes else 'takes no'} --at")
        if self.to == "offset" and not re.fullmatch(r"[0-9]{1,19}", self.at or ""):
            raise EditRefused(f"--at {self.at}: an offset is a number, of 19 digits at most")
        if self.to == "timestamp" and self.time_ms() < 0:
            raise EditRefused(f"--at {self.at}: it is before 1970, where no log has anything")

    def time_ms(self) -> int:
        """The timestamp in Unix milliseconds."""
        try:
            at = datetime.fromisoformat(self.at or "")
        except ValueError as error:
            raise EditRefused(f"--at {self.at}: {error}") from error
        if at.tzinfo is None:
            raise EditRefused(f"--at {self.at}: a zone is required, as in 2026-01-31T00:00:00Z")
        return int(at.timestamp() * 1000)


def make_plan(pipeline: PipelineConfig, recorded: Snapshot, wish: ResetParams) -> ResetPlan:
    """Plan a reset with the broker's present answers. Raises EditRefused."""
    source = pipeline.source()
    try:
        ids = source.topic_ids()
        check_topic_ids(recorded, ids)
        questions = source.questions()
        chosen = _chosen(questions, sorted(ids), wish)
        around = ResetSurroundings(
            questions.watermarks(chosen),
            committed(source),
            questions.compacted({source.topic for source in chosen}),
            any(route.mode is Mode.APPEND for route in pipeline.section.routes()),
        )
        request = ResetRequest(
            ResetTo(wish.to), tuple(chosen), _at(questions, chosen, wish), wish.table
        )
    except (TopicMissing, PositionError, StoreError) as error:
        raise EditRefused(str(error)) from error
    except NotAnswered as error:
        raise EditRefused(f"the broker can't be queried: {error}") from error
    plan = plan_reset(recorded, around, request)
    _check_targets(pipeline.sinks, plan)
    return plan


def _check_targets(sinks: Collection[str], plan: ResetPlan) -> None:
    """Raise EditRefused for a target whose marks no sink can move: the next start would fail
    there."""
    for name in sorted({mark.target for mark in plan.marks}):
        try:
            sink = TargetName.parse(name).sink
        except ValueError as error:
            raise EditRefused(f"--table: {error}") from error
        if sink not in sinks:
            raise EditRefused(
                f"{name}: its mark can't be moved, for the configuration has no sink {sink!r} "
                f"({', '.join(sorted(sinks))}): name others by --table, or configure it"
            )


def describe(plan: ResetPlan) -> list[str]:
    """Lines about what the plan would do."""
    lines: list[str] = []
    for move in plan.partitions:
        before = "nothing recorded" if move.before is None else str(move.before)
        lines.append(f"{move.source}: {before} -> {move.after}{_effect(move.before, move.after)}")
        if move.group not in (None, move.after):
            lines.append(f"  the group's commit {move.group} -> {move.after}")
        mine = (mark for mark in plan.marks if mark.source == move.source)
        lines += ("  " + _mark(mark.target, mark.before, mark.after) for mark in mine)
    return lines


def _effect(before: int | None, after: int) -> str:
    if before is None or before == after:
        return ""
    if after < before:
        return f", {counted(before - after, 'offset is', 'offsets are')} read again"
    return f", {counted(after - before, 'offset is', 'offsets are')} skipped"


def _mark(target: str, before: int | None, after: int) -> str:
    if before is None:
        return f"{target}: its mark -> {after} at most, what lies above is applied again"
    if after < before:
        return f"{target}: mark {before} -> {after}, what lies between is applied again"
    return f"{target}: mark {before} -> {after}, what lies between is skipped"


def refuse_members(source: Source, group: str, own: int = 0) -> None:
    """Raise EditRefused if the group has members besides the ``own`` of a running daemon.

    Another member would go on from its own position, and move the marks with it. This daemon's
    static name stays in the group for a while, and is no other. Raises StoreError.
    """
    ours = source.own_instance()
    try:
        members = source.members()
    except NotAnswered as error:
        raise EditRefused(f"group {group!r} can't be queried: {error}") from error
    others = [m for m in members if ours is None or m.instance_id != ours]
    if len(others) > own:
        names = ", ".join(sorted(f"{m.client_id} at {m.host}" for m in others))
        raise EditRefused(
            f"group {group!r} has members that read ({names}): what they have read is unknown. "
            "Stop them first, and reset in each one's state directory what it has read"
        )


def move_group(pipeline: PipelineConfig, recorded: Snapshot) -> None:
    """Move the group's commit to what a reset recorded, if it has one. Raises StoreError.

    It moves before the marks: if the file is lost afterwards, the group must not point beyond what
    was taken from the targets. While the group has members, the broker refuses.
    """
    reset = {source: state for source, state in recorded.partitions.items() if state.reset}
    if not reset:
        return
    store = pipeline.source().group_commit()
    store.start()
    try:
        if "kafka-commit" not in pipeline.section.offset_stores:
            found = store.get().snapshot
            known = found.partitions if found is not None else {}
            reset = {source: state for source, state in reset.items() if source in known}
        store.set(replace(recorded, partitions=reset)).result()
    finally:
        store.stop()


def _chosen(questions: Questions, topics: Sequence[str], wish: ResetParams) -> list[TopicPartition]:
    if wish.topic is not None and wish.topic not in topics:
        raise EditRefused(f"--topic {wish.topic}: the pipeline reads {_some(topics)}")
    mine = [wish.topic] if wish.topic is not None else list(topics)
    if wish.partition is not None and len(mine) > 1:
        raise EditRefused("--partition needs --topic: the pipeline reads several")
    there = questions.partitions(mine)
    if wish.partition is not None:
        there = [source for source in there if source.partition == wish.partition]
        if not there:
            raise EditRefused(f"{mine[0]} has no partition {wish.partition}")
    if wish.to == "offset" and len(there) > 1:
        raise EditRefused("--to offset is for one partition: name it by --topic and --partition")
    return sorted(there)


def _some(topics: Sequence[str]) -> str:
    """The first of them by name; patterns may take thousands."""
    more = f" and {len(topics) - MOST_NAMED:,} more" if len(topics) > MOST_NAMED else ""
    return (", ".join(topics[:MOST_NAMED]) or "no topic now") + more


def _at(
    questions: Questions, chosen: list[TopicPartition], wish: ResetParams
) -> dict[TopicPartition, int]:
    if wish.to == "offset":
        return dict.fromkeys(chosen, int(wish.at or ""))
    if wish.to != "timestamp":
        return {}
    return questions.at_time(chosen, wish.time_ms())

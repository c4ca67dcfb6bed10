"""Opens the pipelines of tables for a gate, and looks at all of them once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from changes.routes.routing import RouteConflict
from daemon.cli.counts.bounds import RangeGone
from daemon.cli.counts.pipelines import CountsRefused
from daemon.cli.counts.scan import TooWide
from daemon.cli.counts.tally import TooMany
from daemon.cli.gate.counted import CountsAgree
from daemon.cli.gate.watch import GateLook, PipelineGate
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig, pipeline_of_target, pipelines_of
from daemon.operations.engine.here import Offline
from daemon.state.cuts_table import CutsTable
from daemon.state.dead_letters.index import Unreadable
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseAway, DatabaseError
from offsets.recovery import PositionError
from sources.base.port import LogGone, LogUnreadable, NotAnswered, TopicMissing
from sparkwriter.kit.queries import NoAnswer


class GateRefused(Exception):
    """It can't be told whether these tables are complete: one line."""


REFUSED = (
    NoAnswer, DatabaseError, EditRefused, TopicMissing, LogGone, Unreadable, PositionError,
    RangeGone, CountsRefused, TooWide, TooMany, RouteConflict, GateRefused,
)  # fmt: skip
"""What waiting does not change."""

ADD_STORE = 'add "file" to its offset_stores'


def by_pipeline(
    settings: Config, tables: Iterable[str]
) -> list[tuple[PipelineConfig, Sequence[str]]]:
    """Each pipeline of the tables, with its own. Raises GateRefused."""
    pipelines, found = pipelines_of(settings), dict[str, list[str]]()
    for name in dict.fromkeys(tables):
        if (pipeline := pipeline_of_target(pipelines, name)) is None:
            raise GateRefused(f"{name!r}: no target of any route, such as lake.shop.orders")
        if not pipelines[pipeline].section.remembers:
            raise GateRefused(
                f"pipeline {pipeline}: nothing is recorded of its tables: {ADD_STORE}"
            )
        found.setdefault(pipeline, []).append(name)
    return [(pipelines[name], targets) for name, targets in found.items()]


def gates_of(
    settings: Config,
    tables: Iterable[str],
    through_ms: int,
    tell: Callable[[str], None],
    *,
    empty: bool = False,
    cut: bool = False,
    in_cut: int | None = None,
    counted: CountsAgree | None = None,
) -> list[PipelineGate]:
    """One for each pipeline of the tables. ``tell`` gets warnings. ``cut``: a cut has to have them,
    too; ``in_cut``: this one. Raises GateRefused, NoAnswer."""
    parts = by_pipeline(settings, tables)
    if cut and len(parts) > 1:
        names = ", ".join(pipeline.name for pipeline, _ in parts)
        raise GateRefused(f"a cut is of one pipeline, and these tables are of {names}")
    here = Offline(settings, lambda _, line: tell(line), {})
    return [
        PipelineGate(
            here,
            pipeline,
            targets,
            through_ms,
            empty,
            CutsTable(pipeline) if cut else None,
            counted,
            in_cut,
        )
        for pipeline, targets in parts
    ]


def look_at(settings: Config, gates: Sequence[PipelineGate]) -> list[GateLook]:
    """One look at each. Raises REFUSED, StoreError, OSError. A broker that is away may be back in
    time, and so may the sink of a table of counts, or of cuts: that is a reason."""
    try:
        return [each.look() for each in gates]
    except (NotAnswered, LogUnreadable, DatabaseAway) as error:
        hint = "" if isinstance(error, DatabaseAway) else settings.kafka_hint
        away = settings.redactor.text(f"{error}{hint}")
        return [GateLook(dict.fromkeys(each.targets, away), {}) for each in gates]


def kind_of(line: str) -> str:
    """What a line says but for its numbers: only another kind is news."""
    return re.sub("[0-9]+", "", line)


class News:
    """Lines that were told, so that each is told once. One thread's."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def of(self, shut: Mapping[str, str]) -> Iterator[str]:
        """A line for each table that is shut for a new reason."""
        for name, why in shut.items():
            if kind_of(line := f"{name}: {why}") not in self._told:
                self._told.add(kind_of(line))
                yield line

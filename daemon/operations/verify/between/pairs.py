"""Pairs targets that are of one table of the source, to be compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from changes.model.model import TableName, TargetName
from changes.routes.routing import Route, RouteConflict, Router, TargetRoute
from changes.routes.sharing import patterns_meet, tables_of
from daemon.operations.engine.port import Look
from daemon.operations.engine.record import JobRequest
from daemon.operations.engine.source_targets import unfit
from settings.counted import counted
from sparkwriter.sinks import sinks_of

BETWEEN = "between"
"""The parameter of a job that compares targets with each other: of each of its targets the other
one, as ``OtherSide.document`` has it."""

LONE = "only_one_side"
"""The parameter of such a job that names the targets which only one side has, and why."""

UNFIT = "not_compared"
"""The parameter of such a job that names the targets that can't be compared, and why: the result
has them among its tables."""

LIKE_THIS = "--between FIRST SECOND: two targets, two patterns of targets, or two sinks"


class OtherSide(NamedTuple):
    """The second target of a pair, and the pipeline that fills it."""

    pipeline: str
    target: str

    def document(self) -> dict[str, str]:
        """As JSON keeps it."""
        return {"pipeline": self.pipeline, "target": self.target}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> OtherSide:
        """Read back what ``document`` gave. Raises KeyError, ValueError."""
        TargetName.parse(str(document["target"]))
        return cls(str(document["pipeline"]), str(document["target"]))


def other_of(wanted: JobRequest, place: int) -> OtherSide | None:
    """What a job's target is compared with; None: with its source."""
    others = wanted.params.get(BETWEEN)
    return None if others is None else OtherSide.of(others[place])


class FilledTarget(NamedTuple):
    """A target, the pipeline that fills it, and the table of the source that it is of."""

    pipeline: str
    target: TargetName
    table: TableName
    route: TargetRoute


class Unpaired(NamedTuple):
    """A target that is not compared, and why."""

    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """``found``: what is compared. ``lone``: what only one side has. ``unfit``: what can't be
    compared. ``unknown``: patterns that no target has."""

    found: tuple[tuple[FilledTarget, FilledTarget], ...] = ()
    lone: tuple[Unpaired, ...] = ()
    unfit: tuple[Unpaired, ...] = ()
    unknown: tuple[str, ...] = ()


def filled(look: Look, pipeline: str, target: str) -> FilledTarget:
    """A target with its table. Raises ValueError where its rows are no rows of one table."""
    routes, name = look.config.routes(pipeline), TargetName.parse(target)
    tables = list(tables_to(routes, name))
    if not tables:
        raise ValueError(f"no route of pipeline {pipeline} leads to it")
    if len(tables) > 1 or tables[0] is None:
        raise ValueError("several tables of the source lead to it")
    table, router = tables[0], Router(routes)
    try:
        route = next(route for route in router.targets(table) if route.name == name)
    except RouteConflict as conflict:
        raise ValueError(str(conflict)) from conflict
    if (why := unfit(router, table, route)) is not None:
        raise ValueError(why)
    return FilledTarget(pipeline, name, table, route)


def tables_to(routes: Iterable[Route], target: TargetName) -> Iterator[TableName | None]:
    """The tables of the source that lead to a target; None stands for any number of them."""
    found: dict[TableName | None, None] = {}
    for route in routes:
        for named in tables_of(route.template, target):
            for pattern in route.globs:
                for database, table in patterns_meet(pattern, named):
                    if database is None or table is None:
                        found[None] = None
                    elif route.takes(one := TableName(database, table)):
                        found[one] = None
    yield from found


def paired(look: Look, first: str, second: str) -> Pairs:
    """The targets of two patterns, by the table that they are of. Raises StoreError."""
    sides = [_matching(look, _pattern(look, pattern)) for pattern in (first, second)]
    unknown = [p for p, side in zip((first, second), sides, strict=True) if not side]
    tables: list[dict[TableName, list[FilledTarget]]] = [{}, {}]
    wrong: list[Unpaired] = []
    for place, side in enumerate(sides):
        for pipeline, target in side:
            try:
                one = filled(look, pipeline, target)
            except ValueError as error:
                wrong.append(Unpaired(target, str(error)))
                continue
            tables[place].setdefault(one.table, []).append(one)
    found, lone = [], []
    for table in sorted({*tables[0], *tables[1]}):
        firsts, seconds = tables[0].get(table, []), tables[1].get(table, [])
        if not firsts or not seconds:
            other = (first, second)[bool(firsts)]
            lone += [Unpaired(str(one.target), f"{other} has no table of {table}")
                     for one in (*firsts, *seconds)]  # fmt: skip
        elif (why := _why_not(look, firsts, seconds)) is not None:
            wrong += [Unpaired(str(one.target), why) for one in firsts]
        else:
            found.append((firsts[0], seconds[0]))
    return Pairs(tuple(found), tuple(lone), tuple(dict.fromkeys(wrong)), tuple(unknown))


def _pattern(look: Look, given: str) -> str:
    """A sink's name stands for all of its targets."""
    return f"{given}.*" if given in look.config.sink else given


def _matching(look: Look, pattern: str) -> list[tuple[str, str]]:
    """The targets that are filled, with their pipelines. binlogd's own tables are of no route."""
    return [
        (name, target)
        for name in look.config.pipeline
        for target in sorted(look.snapshot(name).targets)
        if target == pattern
        or (fnmatchcase(target, pattern) and _is_routed(look.config.routes(name), target))
    ]


def _is_routed(routes: Iterable[Route], target: str) -> bool:
    return bool(list(tables_to(routes, TargetName.parse(target))))


def _why_not(
    look: Look, firsts: Sequence[FilledTarget], seconds: Sequence[FilledTarget]
) -> str | None:
    """Why the targets of one table can't be compared; None: they can."""
    for side in (firsts, seconds):
        if len(side) > 1:
            names = " and ".join(str(one.target) for one in side[:3])
            of = counted(len(side), "target is", "targets are")
            return f"{of} of {side[0].table}: {names}; name one of them"
    one, other = firsts[0], seconds[0]
    if _place(look, one.target) == _place(look, other.target):
        return "it is the same table on both sides"
    for each in (one, other):
        section = look.config.sink[each.target.sink]
        if section.kind != "jdbc" and sinks_of(look.config)[each.target.sink].catalog() is None:
            return (
                f"tables of sink {each.target.sink} can't be read back: --between takes tables of"
                " a lake, PostgreSQL, MySQL and MariaDB"
            )
    return _of_two_logs(look, one.pipeline, other.pipeline)


def _place(look: Look, target: TargetName) -> tuple[object, str, str]:
    """Where a table is: two sinks may be of one database, or of one catalog."""
    section = look.config.sink[target.sink]
    store = getattr(section, "url", None) or getattr(section, "catalog", None) or target.sink
    return store, target.namespace, target.table


def _of_two_logs(look: Look, one: str, other: str) -> str | None:
    brokers = [look.config.kafka_of(name).get("bootstrap.servers") for name in (one, other)]
    if brokers[0] == brokers[1]:
        return None
    return (
        f"pipelines {one} and {other} read other brokers: only the targets of one log can be"
        " compared; compare each with the source (`binlogd tables verify TARGET`)"
    )

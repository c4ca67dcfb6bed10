"""Routes source tables to targets, and targets to processors."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from changes.model.model import ColumnTypes, Mode, SinkOptions, TableName, TargetName
from changes.model.names import (
    covers_database,
    expression,
    glob_of,
    is_expression,
    name_problem,
    reaches,
    takes,
    target_problem,
)
from changes.routes.shaping.shape import NO_SHAPE, Pairs, Shape
from changes.routes.sharing import PLACEHOLDER, Named, covers, patterns_meet, tables_of

_ALLOWED = ("database", "table")


def shard_of(target: str, shards: int) -> int:
    """The index of the processor that holds a target.

    crc32, not ``hash()``: that differs from process to process (PYTHONHASHSEED), and a target would
    move to another processor at each restart. crc32 is never negative, so it needs no ``abs()``,
    which would be negative for the smallest 32-bit hash.
    """
    return zlib.crc32(target.encode()) % shards


@dataclass(frozen=True, slots=True)
class Route:
    """Source tables to a target, by patterns (``shop.order_*``, case matters) on database.table.

    ``template`` names the target: sink, namespace and table with a dot between, where
    ``{database}`` and ``{table}`` stand for the source's names. ``reader_renames``: columns that
    the reader of the log renames, by the database's name and the stream's. Raises ValueError for
    another form.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    template: str
    mode: Mode
    keys: tuple[str, ...] | None = None
    types: ColumnTypes = ()
    options: SinkOptions = ()
    shape: Shape = NO_SHAPE
    reader_renames: Pairs = ()

    def __post_init__(self) -> None:
        self.shape.check_keys(self.keys or ())
        parts = self.template.split(".")
        if len(parts) != 3 or not all(parts):
            raise ValueError(
                f"target {self.template!r} is not of the form sink.namespace.table, "
                f"like lake.{{database}}.{{table}}"
            )
        for name in PLACEHOLDER.findall(self.template):
            if name not in _ALLOWED:
                raise ValueError(
                    f"target {self.template!r} holds {{{name}}}; "
                    "allowed are {database} and {table}"
                )
        if re.search(r"[{}]", PLACEHOLDER.sub("", self.template)):
            raise ValueError(f"target {self.template!r} has a brace without its partner")
        if "{" in parts[0]:
            raise ValueError(f"target {self.template!r}: the sink must be named, not {parts[0]}")
        if (problem := name_problem(PLACEHOLDER.sub("x", self.template))) is not None:
            raise ValueError(f"target {self.template!r}: {problem}")
        if not self.include:
            raise ValueError(f"the route to {self.template!r} includes no table")
        for pattern in (*self.include, *self.exclude):
            if is_expression(pattern):
                expression(pattern)
            elif "." not in pattern and "*" not in pattern:
                raise ValueError(f"pattern {pattern!r} matches no table; write database.table")

    def takes(self, table: TableName) -> bool:
        """Whether the table takes this route."""
        name = str(table)
        return any(takes(pattern, name) for pattern in self.include) and not any(
            takes(pattern, name) for pattern in self.exclude
        )

    @property
    def globs(self) -> tuple[str, ...]:
        """The patterns of its tables as stars: all that they take, and maybe more."""
        return tuple(map(glob_of, self.include))

    def takes_some_of(self, database: str) -> bool:
        """Whether any table of the database could take this route."""
        return any(reaches(pattern, database) for pattern in self.globs) and not any(
            covers_database(pattern, database) for pattern in self.exclude
        )

    def takes_one_named(self, table: str) -> bool:
        """Whether a table of this name could take this route, in any database."""
        named = Named(None, table)
        return any(
            self._takes_another(found, TableName("", ""))
            for pattern in self.globs
            for found in patterns_meet(pattern, named)
        )

    def target(self, table: TableName) -> TargetName:
        """The table's target. A source's name stays as it is, dots and braces included."""
        names = {"database": table.database, "table": table.table}
        sink, namespace, name = (
            PLACEHOLDER.sub(lambda found: names[found[1]], part)
            for part in self.template.split(".")
        )
        return TargetName(sink, namespace, name)

    def known_targets(self) -> Iterator[TargetName]:
        """Targets that are known before a table arrives: of a fixed name, of tables in full."""
        if not PLACEHOLDER.search(self.template):
            yield self.target(TableName("", ""))
            return
        for pattern in self.globs:
            database, dot, table = pattern.partition(".")
            if dot and not re.search(r"[*?\[]", pattern) and self.takes(TableName(database, table)):
                yield self.target(TableName(database, table))

    def feeds(self, target: TargetName, besides: TableName) -> bool:
        """Whether another table than that may take this route to the target."""
        return any(
            self._takes_another(found, besides)
            for named in tables_of(self.template, target)
            for pattern in self.globs
            for found in patterns_meet(pattern, named)
        )

    def _takes_another(self, named: Named, besides: TableName) -> bool:
        if named.database is None or named.table is None:
            return not any(covers(pattern, named) for pattern in self.exclude)
        table = TableName(named.database, named.table)
        return table != besides and self.takes(table)

    @property
    def one_table_each(self) -> bool:
        """Whether a target is meant to be of one table: its name holds both of that."""
        return set(PLACEHOLDER.findall(self.template)) == set(_ALLOWED)


@dataclass(frozen=True, slots=True)
class TargetRoute:
    """The target of one table's changes, with its mode and keys."""

    name: TargetName
    mode: Mode
    keys: tuple[str, ...] | None
    types: ColumnTypes = ()
    options: SinkOptions = ()
    shape: Shape = NO_SHAPE
    reader_renames: Pairs = ()


class RouteConflict(ValueError):
    """The configuration routes tables to one target in contradictory ways."""


class Router:
    """Finds the targets of tables, with a cache. Used by one thread."""

    def __init__(
        self, routes: Iterable[Route], instead: Mapping[TargetName, TargetName] | None = None
    ) -> None:
        """``instead``: by target another one that gets its changes for now (a rebuild)."""
        self._routes = tuple(routes)
        self._instead = dict(instead or {})
        self._stand_ins = {new: old for old, new in self._instead.items()}
        self._known: dict[TableName, tuple[TargetRoute, ...]] = {}
        self._targets: dict[TargetName, TargetRoute] = {}
        self._left_out: dict[TableName, str | None] = {}
        self._owners: dict[tuple[TableName, TargetName], TableName | None] = {}

    def targets(self, table: TableName) -> tuple[TargetRoute, ...]:
        """The targets of a table; none where no route takes it.

        An empty table name means a whole database, as in DROP DATABASE, an empty database any: then
        the result has each route that could take such a table. Raises RouteConflict.
        """
        known = self._known.get(table)
        if known is None:
            known = self._known[table] = self._find(table)
        return known

    def left_out(self, table: TableName) -> str | None:
        """Why a table that has a route has no target: no target may have that name."""
        if table not in self._left_out:
            targets = (route.target(table) for route in self._routes if route.takes(table))
            problems = filter(None, map(target_problem, targets))
            self._left_out[table] = next(problems, None)
        return self._left_out[table]

    def reaches(self, target: TargetName) -> bool:
        """Whether any table could lead to the target, also where it stands in for another one."""
        return self.shown_in(target) is not None

    def shown_in(self, target: TargetName) -> str | None:
        """The fingerprint of what the route shows that leads to a target; None: none leads there,
        also not to what it stands in for."""
        name, nobody = self._stand_ins.get(target, target), TableName("", "")
        found = (route.shape.fingerprint for route in self._routes if route.feeds(name, nobody))
        return next(found, None)

    def twin(self, table: TableName, target: TargetName, other: TableName) -> TargetName | None:
        """The target of ``other`` by the route that leads ``table`` to ``target``.

        None where that route does not take ``other``, or has no target for it.
        """
        for route in self._routes:
            if route.takes(table) and self._place(route.target(table)) == target:
                there = route.target(other)
                leads = route.takes(other) and target_problem(there) is None
                return self._place(there) if leads else None
        return None

    def stands_in_for(self, target: TargetName) -> TargetName | None:
        """The target whose changes this one gets for now."""
        return self._stand_ins.get(target)

    def _place(self, target: TargetName) -> TargetName:
        return self._instead.get(target, target)

    def left_out_named(self) -> dict[str, str]:
        """Up to a hundred of the tables seen so far that are left out, each with the reason."""
        found = {str(table): why for table, why in self._left_out.items() if why is not None}
        return dict(islice(found.items(), 100))

    def shared(self, target: TargetName) -> bool:
        """Whether several of the tables seen so far go to the target."""
        known = list(self._known.items())
        tables = [table for table, routes in known if target in {route.name for route in routes}]
        return sum(bool(table.database and table.table) for table in tables) > 1

    def merges(self, table: TableName, target: TargetName) -> bool:
        """Whether other source tables than this one may feed the target, too.

        Two tables whose templates hold both names, and happen to spell one target, are not meant to
        share it: that is a conflict.
        """
        name = self._stand_ins.get(target, target)
        mine = [r for r in self._routes if r.takes(table) and r.target(table) == name]
        one_each = all(route.one_table_each for route in mine)
        return any(
            route.feeds(name, table)
            for route in self._routes
            if not (one_each and route.one_table_each)
        )

    def owner(self, table: TableName, target: TargetName) -> TableName | None:
        """The table, where it has the target for itself; None where others may feed it too."""
        asked = (table, target)
        if asked not in self._owners:
            self._owners[asked] = None if self.merges(*asked) else table
        return self._owners[asked]

    def _target(self, route: Route, table: TableName) -> TargetRoute:
        name = self._place(route.target(table))
        return TargetRoute(
            name, route.mode, route.keys, route.types, route.options, route.shape,
            route.reader_renames,
        )  # fmt: skip

    def _find(self, table: TableName) -> tuple[TargetRoute, ...]:
        if not table.table:
            return tuple(
                self._target(route, table)
                for route in self._routes
                if not table.database or route.takes_some_of(table.database)
            )
        if not table.database:
            return tuple(
                self._target(route, table)
                for route in self._routes
                if route.takes_one_named(table.table)
            )
        found: dict[TargetName, TargetRoute] = {}
        for route in self._routes:
            if not route.takes(table) or target_problem(route.target(table)) is not None:
                continue
            target = self._target(route, table)
            if target.name in found:
                raise RouteConflict(f"two routes send {table} to {target.name}")
            if self._targets.setdefault(target.name, target) != target:
                raise RouteConflict(
                    f"{table} goes to {target.name}, which another route fills in another mode, "
                    "by other keys, types or reader_renames, in another shape, or another way"
                )
            found[target.name] = target
        return tuple(found.values())

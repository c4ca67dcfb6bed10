"""A database with a past: its tables after each commit, and the log that tells of some of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets.position import TopicPartition
from tests.simulation.rows import Key
from tests.simulation.shape import Shape
from tests.simulation.source import Message, Source, SourceTable, target_of
from tests.simulation.stream import SOURCES, Stream, lay_out

Rows = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True)
class TableThen:
    """A table after a commit. ``altered``: how often its definition changed so far."""

    columns: tuple[str, ...]
    rows: Rows
    altered: int


Version = Mapping[str, TableThen]


@dataclass
class History:
    """``versions``: the tables after so many commits; ``commits``: where each is in the log."""

    stream: Stream
    versions: list[Version] = field(default_factory=list)
    commits: list[TopicPartition] = field(default_factory=list)


class FollowedSource(Source):
    """Makes of statements those that a load begins again behind, and no renamings of tables."""

    altered: dict[str, int]

    def _ddl(self, name: str, table: SourceTable) -> Message:
        message = super()._ddl(name, table)
        self.altered[name] = self.altered.get(name, 0) + 1
        return message

    def _drop(self, name: str, table: SourceTable) -> str:
        return self._truncate(name, table)

    def _rename(self, name: str, table: SourceTable) -> str:
        return self._add_and_drop(name, table)

    def _take_place(self, name: str, table: SourceTable) -> str:
        return self._drop_column(name, table)


class GrowingSource(FollowedSource):
    """Of statements it makes those alone that leave the columns which a route names."""

    def _drop_column(self, name: str, table: SourceTable) -> str:
        return self._truncate(name, table)

    def _add_and_drop(self, name: str, table: SourceTable) -> str:
        return self._add(name, table)

    def _rename_column(self, name: str, table: SourceTable) -> str:
        return self._add(name, table)

    def _narrow(self, name: str, table: SourceTable) -> str:
        return self._add(name, table)


def random_history(
    rng: random.Random, before: int, messages: int, tables: int, shape: Shape
) -> History:
    """Tables that had ``before`` changes before their log begins, and so many after that."""
    source = (GrowingSource if shape.route else FollowedSource)(rng, shape, tables)
    source.altered = {}
    for name in source._names:
        source.tables[name] = SourceTable(list(shape.columns))
    for _ in range(before):
        source.next()
    stream = Stream(shape, {})
    history = History(stream, [_version(source)])
    made: dict[int, list[Message]] = {0: [], 1: []}
    for _ in range(messages):
        message = source.next()
        if message is not None:
            made[message.partition].append(message)
            history.commits.append(SOURCES[message.partition])
            history.versions.append(_version(source))
    for place, found in zip(SOURCES, made.values(), strict=True):
        lay_out(rng, stream, place, found)
    stream.tables = {target_of(name): dict(then.rows) for name, then in _version(source).items()}
    return history


def _version(source: FollowedSource) -> Version:
    return {
        name: TableThen(
            tuple(table.columns),
            {(key,): {"id": key, **row} for key, row in table.rows.items()},
            source.altered.get(name, 0),
        )
        for name, table in source.tables.items()
    }

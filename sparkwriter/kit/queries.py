"""Answers a SELECT over a sink's tables, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from changes.model.model import TargetName
from offsets.position import TopicPartition


class NoAnswer(Exception):
    """The statement can't be answered: one line."""


class NoTable(NoAnswer):
    """A table that it is about is not there."""


class QueryRows(NamedTuple):
    """The columns' names, and the rows as Python values."""

    columns: Sequence[str]
    rows: Iterator[Sequence[Any]]


class Since(NamedTuple):
    """A version of a table, and when it was written (Unix milliseconds). ``expired``: others came
    before it that are not kept, so this one may not be the first."""

    version: str
    time_ms: int
    expired: bool


At = int | datetime | Mapping[TargetName, int] | None
"""Which state of the tables: a snapshot's id, of each table its own, a time, None: the present
one."""


class Queries(Protocol):
    """What answers them, at one sink. One thread's. It can't write: that is refused by what runs
    the statement."""

    backslashes: bool
    """Whether a backslash in a text takes the next sign along."""

    def spell(self, target: TargetName) -> str:
        """A target's name as the statement needs it."""
        ...

    def since(self, target: TargetName, source: TopicPartition, offset: int) -> Since | None:
        """The first version that holds a lane through an offset, of those that are kept; None: none
        does, or the sink keeps no former versions. Raises NoAnswer."""
        ...

    def answer(
        self, sql: str, targets: Sequence[TargetName], at: At
    ) -> AbstractContextManager[QueryRows]:
        """Run one statement over these targets. Raises NoAnswer, DatabaseError, and so do the
        rows."""
        ...


def only_now(sink: str, at: At) -> None:
    """Raise NoAnswer where a former state is requested, and the sink keeps none."""
    if at is not None:
        raise NoAnswer(
            f"--at, --cut: sink {sink} keeps the present rows alone; a lake has former ones"
        )

"""Answers a SELECT over a sink's tables, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from changes.model.model import TargetName


class NoAnswer(Exception):
    """The statement can't be answered: one line."""


class NoTable(NoAnswer):
    """A table that it is about is not there."""


class QueryRows(NamedTuple):
    """The columns' names, and the rows as Python values."""

    columns: Sequence[str]
    rows: Iterator[Sequence[Any]]


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

    def answer(
        self, sql: str, targets: Sequence[TargetName], at: At
    ) -> AbstractContextManager[QueryRows]:
        """Run one statement over these targets. Raises NoAnswer, DatabaseError, and so do the
        rows."""
        ...


def only_now(sink: str, at: At) -> None:
    """Raise NoAnswer where a former state is requested, and the sink keeps none."""
    if at is not None:
        raise NoAnswer(f"--at: sink {sink} keeps the present rows alone; a lake has former ones")

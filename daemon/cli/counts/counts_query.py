"""Asks a source how many changes it made: a query of the user's, at the pipeline's databases."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from daemon.cli.base.texts import time_text
from daemon.cli.counts.expected import (
    MOST_COUNTS,
    ExpectedCounts,
    NoCount,
    column_of,
    table_of,
    whole,
)  # fmt: skip
from daemon.cli.counts.tally import TooMany
from daemon.config.expected_counts import ExpectedCountsSection
from daemon.config.pipeline_config import PipelineConfig
from databases.base.database import Database
from databases.base.errors import DatabaseAway
from databases.opening import Primary
from offsets.counts import RowCounts
from settings.counted import counted

ROWS = 10_000
"""Rows that are fetched together."""

SHOWN_WITHIN_S = 10.0
"""How long a replica is waited for. One that is further behind is asked again by who waits."""

LOOK_EVERY_S = 0.2

Row = Sequence[object]


class QueryCounts:
    """The rows of a query. Rows of one table, minute and operation add up. One thread's."""

    def __init__(self, minutes: range, most: int = MOST_COUNTS) -> None:
        self._minutes, self._most = minutes, most
        self._tables: dict[str, dict[int, RowCounts]] = {}
        self._number = 0

    def take(self, row: Row) -> None:
        """Raises NoCount, TooMany."""
        if len(row) != 4:
            columns = counted(len(row), "column")
            raise NoCount(f"it has {columns}: table, minute, operation, n are required")
        table, column = table_of(row[0]), column_of(row[2])
        minute, number = whole(row[1], "minute since 1970"), whole(row[3], "number of changes")
        if minute not in self._minutes:
            raise NoCount(f"minute {minute} is not from {self._minutes.start} to before its end")
        mine = self._tables.setdefault(table, {})
        self._number += minute not in mine
        if self._number > self._most:
            most = counted(self._most, "minute")
            raise TooMany(f"the query gives more than {most} of tables: ask for less time")
        more = RowCounts(*(number * (at == column) for at in range(3)))
        mine[minute] = mine.get(minute, RowCounts()).plus(more)

    def expected(self, by: str, why_all: str = "") -> ExpectedCounts:
        """What all of that says."""
        return ExpectedCounts(by, self._tables, {}, why_all, "no row")


def counts_of_query(
    pipeline: PipelineConfig, section: ExpectedCountsSection, minutes: range
) -> ExpectedCounts:
    """What the databases say of a range. Raises TooMany, DatabaseAway, DatabaseRefused."""
    names = sorted(pipeline.databases)
    by = f"query of {', '.join(f'database.{name}' for name in names)}"
    found = QueryCounts(minutes)
    for name in names:
        with closing(pipeline.open_database(name)) as database:
            with closing(pipeline.primary_of(name, database)) as primary:
                now_us = _shown(name, primary)
            if now_us < minutes.stop * 60_000_000:
                clock = time_text(now_us // 1000)[:19]
                return found.expected(by, f"{by}: it is {clock}Z there, before the range's end")
            try:
                for row in _rows(database, section.sql(minutes)):
                    found.take(row)
            except NoCount as error:
                return found.expected(by, f"{by} can't be used: {error}")
    return found.expected(by)


def _shown(name: str, primary: Primary) -> int:
    """The primary's clock, once a replica shows all that was committed by then. Raises
    DatabaseAway."""
    moment, position = primary.moment(), primary.position()
    end = time.monotonic() + SHOWN_WITHIN_S
    while not primary.shown(position):
        if time.monotonic() > end:
            raise DatabaseAway(f"database.{name}: not at {position} within {SHOWN_WITHIN_S:g} s")
        time.sleep(LOOK_EVERY_S)
    return moment.unix_us


def _rows(database: Database, sql: str) -> Iterator[Row]:
    with closing(database.answer(sql, ROWS)) as answer:  # type: ignore[type-var]
        next(answer)  # the columns' names
        for some in answer:
            yield from some

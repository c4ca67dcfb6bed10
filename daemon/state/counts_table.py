"""Reads the counts of a pipeline's targets from the table that has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from changes.model.counts_table import READ, read_row
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from daemon.config.pipeline_config import PipelineConfig
from offsets.counts import CountRow
from offsets.position import TopicPartition
from sparkwriter.kit.queries import NoAnswer, NoTable, Queries


class CountsTable:
    """A pipeline's counts, as their table has them now."""

    def __init__(self, pipeline: PipelineConfig, table: TargetName) -> None:
        """Raises NoAnswer where the table's sink answers no queries."""
        self.table, self._pipeline = table, pipeline
        self._queries()

    def rows(self, lane: TopicPartition, offset: int) -> Sequence[CountRow]:
        """Of all targets the runs that reach an offset of this lane; none where there is no table
        yet. Raises NoAnswer and DatabaseError."""
        where = (
            f"topic = {quoted(lane.topic)} AND partition_number = {lane.partition} AND through >= "
            f"{offset}"
        )
        return self._rows(where)

    def of_minutes(self, minutes: range, targets: Collection[str]) -> Sequence[CountRow]:
        """Of these targets the rows of these minutes. Raises as ``rows``."""
        return self._rows(_of(minutes, targets))

    def newest(self, minutes: range, targets: Collection[str]) -> Mapping[int, int]:
        """By minute when the newest row of one of these targets was written, in seconds since
        1970. Few rows, whatever the table holds. Raises as ``rows``."""
        where = f"{_of(minutes, targets)} GROUP BY minute"
        return {int(minute): int(made) for minute, made in self._select("minute, MAX(made)", where)}

    def _rows(self, where: str) -> list[CountRow]:
        try:
            return [read_row(row) for row in self._select(READ, where)]
        except (ValueError, TypeError) as error:
            raise NoAnswer(f"{self.table} has a row that is no count: {error}") from error

    def _select(self, columns: str, where: str) -> list[Sequence[Any]]:
        queries = self._queries()
        sql = f"SELECT {columns} FROM {queries.spell(self.table)} WHERE {where}"
        try:
            with queries.answer(sql, [self.table], None) as answer:
                return [*answer.rows]
        except NoTable:
            return []

    def _queries(self) -> Queries:
        sink = self.table.sink
        if (queries := self._pipeline.queries(sink)) is None:
            raise NoAnswer(f"sink {sink} answers no queries, so {self.table} can't be read")
        return queries


def _of(minutes: range, targets: Collection[str]) -> str:
    names = ", ".join(map(quoted, sorted(targets)))
    return f"target IN ({names}) AND minute >= {minutes.start} AND minute < {minutes.stop}"

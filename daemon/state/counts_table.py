"""Reads the counts of a pipeline's targets from the table that has them."""

from __future__ import annotations

from collections.abc import Sequence

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
        queries = self._queries()
        sql = (
            f"SELECT {READ} FROM {queries.spell(self.table)} WHERE topic = "
            f"{quoted(lane.topic)} AND partition_number = {lane.partition} AND through >= {offset}"
        )
        try:
            with queries.answer(sql, [self.table], None) as answer:
                return [read_row(row) for row in answer.rows]
        except NoTable:
            return []
        except (ValueError, TypeError) as error:
            raise NoAnswer(f"{self.table} has a row that is no count: {error}") from error

    def _queries(self) -> Queries:
        sink = self.table.sink
        if (queries := self._pipeline.queries(sink)) is None:
            raise NoAnswer(f"sink {sink} answers no queries, so {self.table} can't be read")
        return queries

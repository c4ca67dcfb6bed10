"""Reads the cuts of a pipeline from the table that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from changes.model.cut_row import cut_of
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from daemon.config.pipeline_config import PipelineConfig
from offsets.cuts import WITHDRAWN, Cut, kept, withdrawn_by
from sparkwriter.kit.queries import NoAnswer, NoTable, Queries


class ListedCut(NamedTuple):
    """A cut's number, and whether its tables are still kept as they are in it."""

    number: int
    kept: bool


class CutsTable:
    """A pipeline's cuts, as their table has them now. Its methods raise NoAnswer and
    DatabaseError."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        """Raises NoAnswer where the pipeline makes no cuts."""
        self.pipeline, self.section = pipeline.name, pipeline.section
        table = self.section.cuts_table
        if table is None:
            raise NoAnswer(f"pipeline {self.pipeline} makes no cuts: its cut_every is not set")
        self.table: TargetName = table
        queries = pipeline.queries(table.sink)
        assert queries is not None  # as every sink whose tables have former versions
        self._queries: Queries = queries

    def listed(self) -> list[ListedCut]:
        """All that are listed, the newest first; none where there is no table yet."""
        try:
            rows = self._ask("number", f"boundary <> '{WITHDRAWN}'")
        except NoTable:
            return []
        numbers = sorted((int(row["number"]) for row in rows), reverse=True)
        keep, later = self.section.cuts.keep, [*numbers[:1]]
        found = []
        for number in numbers:
            found.append(ListedCut(number, kept(number, later, numbers[0], keep)))
            later = [number]  # the next one's next
        return found

    def read(self, numbers: Sequence[int]) -> list[Cut]:
        """These, in this order. Raises NoAnswer for one that is not listed, by its number."""
        if not numbers:
            return []
        text = ", ".join(map(str, numbers))
        rows = self._rows(f"number IN ({text})")
        found = {cut.number: cut for cut in rows if cut.boundary != WITHDRAWN}
        for number in numbers:
            if number not in found:
                raise NoAnswer(f"{self.table} lists no cut {number} of pipeline {self.pipeline}")
        return [found[number] for number in numbers]

    def withdrawn(self, cuts: Sequence[Cut]) -> list[Cut | None]:
        """Of each the row that withdraws it; None: it stands."""
        oldest = min((cut.number for cut in cuts), default=None)
        if oldest is None:
            return []
        rows = self._rows(f"boundary = '{WITHDRAWN}' AND number > {oldest}")
        return [withdrawn_by(cut, rows) for cut in cuts]

    def _rows(self, where: str) -> list[Cut]:
        """Rows of this pipeline, in any order."""
        try:
            # All columns: one has the name of a word of SQLite's, and databases quote otherwise.
            rows = self._ask("*", where)
        except NoTable as error:
            raise NoAnswer(f"pipeline {self.pipeline} has made no cut yet: {error}") from error
        try:
            return [*map(cut_of, rows)]
        except (ValueError, TypeError, KeyError) as error:
            raise NoAnswer(f"{self.table} has a row that is no cut: {error}") from error

    def _ask(self, columns: str, where: str) -> list[dict[str, Any]]:
        sql = (
            f"SELECT {columns} FROM {self._queries.spell(self.table)} "
            f"WHERE pipeline = {quoted(self.pipeline)} AND {where}"
        )
        with self._queries.answer(sql, [self.table], None) as answer:
            return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

"""Staging in memory: with the real decoder and the real fold, or with a few lines of dicts.

The lines of dicts are a hundred times quicker. What they stand for has tests of its own; here they
let thousands of seeds through the actors' logic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from actors.effects import Stage
from actors.messages import Staged, StageFailed
from changes.formats import FORMATS
from changes.model import OP, Column, FormatOptions, Mode, TableSchema
from daemon.stage_work import StageWork
from tests.simulation.sink import Row

SCHEMA = TableSchema((Column("id", pa.int32()), Column("v", pa.string())), ("id",))


class Staging(Protocol):
    """Staged files of one life of the process."""

    files: dict[str, Any]

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        """As a processor asks for it."""
        ...

    def rows(self, path: str) -> list[Row]:
        """What a staged file holds."""
        ...


class RealStaging:
    """The daemon's own work, on tables in a dict (``daemon.stage_work.Tables``)."""

    def __init__(self, disk_full: Callable[[], bool]) -> None:
        self.files: dict[str, Any] = {}
        self._disk_full = disk_full
        self._work = StageWork(FORMATS["canal-json"](FormatOptions()), self)

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        return self._work.stage(request, path)

    def rows(self, path: str) -> list[Row]:
        rows: list[Row] = self.files[path].to_pylist()
        return rows

    def read(self, path: str) -> pa.Table:
        return self.files[path]

    def write(self, path: str, table: pa.Table) -> int:
        if self._disk_full():
            raise OSError("disk full")
        self.files[path] = table
        return int(table.nbytes)


class PlainStaging:
    """The same by hand, for the messages that ``tests.simulation.stream`` makes."""

    def __init__(self, disk_full: Callable[[], bool]) -> None:
        self.files: dict[str, Any] = {}
        self._disk_full = disk_full

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        target, mode = request.route.name, request.route.mode
        rows = [row for piece in request.pieces for row in self.files[piece]]
        changes = 0
        for stretch in request.stretches:
            for offset, value in zip(stretch.offsets, stretch.values, strict=True):
                found = _parsed(value)
                changes += len(found)
                if mode is Mode.UPSERT:
                    rows += [row for change in found for row in change[1]]
                else:
                    partition = stretch.source.partition
                    rows += [
                        {"_op": letter, "_partition": partition, "_offset": offset, "_index": i}
                        for i, (letter, _) in enumerate(found)
                    ]
        if mode is Mode.UPSERT:
            rows = list({row["id"]: row for row in rows}.values())
        if self._disk_full():
            return StageFailed(target, "disk full")
        self.files[path] = rows
        size = 20 * len(rows)
        schema = SCHEMA if mode is Mode.UPSERT else TableSchema(SCHEMA.columns, ())
        return Staged(target, path, len(rows), size, changes, schema=schema, mode=mode)

    def rows(self, path: str) -> list[Row]:
        rows: list[Row] = self.files[path]
        return rows


@lru_cache(maxsize=4096)
def _parsed(value: bytes) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """A message's changes: the letter, and the rows that it comes to in a table with keys."""
    message = msgspec.json.decode(value)
    letter = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}[message["type"]]
    olds = message["old"] or [{}] * len(message["data"])
    found = []
    for row, old in zip(message["data"], olds, strict=True):
        key = int(row["id"])
        rows: list[Row] = []
        if "id" in old:
            rows.append({OP: "D", "id": int(old["id"])})
        after = {OP: "D"} if letter == "D" else {OP: "U", "v": row["v"]}
        rows.append({**after, "id": key})
        found.append((letter, tuple(rows)))
    return tuple(found)

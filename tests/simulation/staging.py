"""Staging in memory: with the real decoder and the real fold, or with a few lines of dicts.

The lines of dicts are a hundred times quicker. What they stand for has tests of its own; here they
let thousands of seeds through the actors' logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from actors.contract.effects import Stage
from actors.contract.messages import BadMessageAt, Staged, StageFailed
from actors.staging.work import StageWork
from changes.formats import make_format
from changes.model.model import (
    CHANGELOG_NAMES,
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    POSITION,
    Column,
    Mode,
    TableSchema,
)
from changes.model.positions import position_text
from tests.simulation.rows import Change, Net, Nets, fold, follow, newest
from tests.simulation.schemas.registry import FramedCanalJson
from tests.simulation.several import SeveralCanalJson, entries_of
from tests.simulation.shape import POSITIONS, Shape

Entry = tuple[Any, ...]
"""A changelog's row, as far as its own columns go."""

Content = list[Net] | list[Entry]
"""What a staged file holds: the net rows of a table, or a changelog's entries."""


class Staging(Protocol):
    """Staged files of one life of the process."""

    files: dict[str, Any]

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        """As a processor asks for it."""
        ...

    def rows(self, path: str) -> Content:
        """What a staged file holds."""
        ...


class StagedNets(list[Net]):
    """The net rows of a table, which is there for a filter that decides them; as of
    ``actors.staging.staged_tables.StagedTables``, for one write."""

    def __init__(self, table: pa.Table, keys: tuple[str, ...]) -> None:
        super().__init__(_net(row, keys) for row in table.to_pylist())
        self._table, self._keys = table, keys
        self.decided: dict[str, list[Net]] = {}

    def read(self, path: str) -> pa.Table:
        return self._table

    def write(self, path: str, table: pa.Table) -> None:
        self.decided[path] = [_net(row, self._keys) for row in table.to_pylist()]

    def remove(self, path: str) -> None:
        del self.decided[path]


class RealStaging:
    """The daemon's own work, on tables in a dict (``actors.staging.work.Tables``)."""

    def __init__(self, disk_full: Callable[[], bool], shape: Shape) -> None:
        self.files: dict[str, Any] = {}
        self._disk_full = disk_full
        self._keys: dict[str, tuple[str, ...]] = {}
        made = make_format(shape.format, shape.options)
        if shape.several:
            made = SeveralCanalJson(shape.options)
        if shape.registry is not None:
            made = FramedCanalJson(shape.options)
        self._work = StageWork(made, self)

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        staged = self._work.stage(request, path)
        if isinstance(staged, Staged) and staged.schema is not None:
            self._keys[path] = staged.schema.keys
        return staged

    def rows(self, path: str) -> Content:
        table: pa.Table = self.files[path]
        if OP not in table.column_names:
            marks = list(CHANGELOG_NAMES)
            return [tuple(row[column] for column in marks) for row in table.to_pylist()]
        return StagedNets(table, self._keys[path])

    def read(self, path: str) -> pa.Table:
        return self.files[path]

    def write(self, path: str, table: pa.Table) -> int:
        if self._disk_full():
            raise OSError("disk full")
        self.files[path] = table
        return int(table.nbytes)


def _net(row: dict[str, Any], keys: tuple[str, ...]) -> Net:
    """A row of a folded table: its presence columns, and where it came from."""
    key, position = tuple(row[name] for name in keys), row.get(POSITION)
    if row[OP] != "U":
        return Net(key, None, None, position)
    values = {
        name: value
        for name, value in row.items()
        if not name.startswith("__binlogd") and row.get(HAS_PREFIX + name, True)
    }
    moved = row.get(FROM) is not None
    base = tuple(row[FROM_PREFIX + name] for name in keys) if moved else key
    return Net(key, values, base, position)


class PlainStaging:
    """The same by hand, for the messages that ``tests.simulation.source`` makes."""

    def __init__(self, disk_full: Callable[[], bool], shape: Shape) -> None:
        self.files: dict[str, Any] = {}
        self._disk_full = disk_full
        self._positions = POSITIONS if shape.lanes else None
        self._columns: dict[str, tuple[int, dict[str, None]]] = {}

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        target, mode = request.route.name, request.route.mode
        good, bad = _decoded(request)
        columns = self._known(str(target), request.generation)
        for _, _, message in good:
            columns |= dict.fromkeys(message.columns)
        changes = sum(len(message.letters) for _, _, message in good)
        if not (good or request.earlier_files):
            return Staged(target, changes=changes, bad=bad)
        pieces = [self.files[piece] for piece in request.earlier_files]
        before = max((lane.rows_before for lane in request.lanes), default=0)
        if mode is Mode.APPEND:
            content: Content = _entries(pieces, good, before)
            rows: list[Net] = []
        else:
            content = rows = self._nets(pieces, good)
        if self._disk_full():
            return StageFailed(target, "disk full")
        self.files[path] = content
        keys = ("id",) if mode is Mode.UPSERT else ()
        schema = TableSchema(tuple(Column(name, pa.string()) for name in columns), keys)
        positions = self._positions if mode is Mode.UPSERT else None
        return Staged(
            target, path, len(content), 20 * len(content), changes, schema=schema, mode=mode,
            positions=positions, bad=bad, partial=_lacking(columns, rows),
            moves=any(net.values is not None and net.base not in (None, net.key) for net in rows),
        )  # fmt: skip

    def rows(self, path: str) -> Content:
        content: Content = self.files[path]
        return content

    def _known(self, target: str, generation: int) -> dict[str, None]:
        known = self._columns.get(target)
        if known is None or known[0] != generation:
            known = self._columns[target] = (generation, {})
        return known[1]

    def _nets(self, pieces: list[list[Net]], good: list[tuple[int, int, _Parsed]]) -> list[Net]:
        changes = [change for _, _, message in good for change in message.changes]
        if self._positions is not None:
            fresh = [Net(c.key, c.values, c.key, c.position) for c in changes]
            return list(newest([net for piece in pieces for net in piece] + fresh).values())
        nets: Nets = {}
        for piece in pieces:
            nets = follow(nets, {net.key: net for net in piece})
        return list(fold(nets, changes).values())


def _lacking(columns: Iterable[str], rows: list[Net]) -> tuple[str, ...]:
    """The columns that some row lacks."""
    stay = [net.values for net in rows if net.values is not None]
    return tuple(name for name in columns if any(name not in values for values in stay))


def _entries(
    pieces: list[list[Entry]], good: list[tuple[int, int, _Parsed]], before: int
) -> list[Entry]:
    entries = [entry for piece in pieces for entry in piece]
    for partition, offset, message in good:
        entries += [
            (letter, partition, offset, i) for i, letter in enumerate(message.letters, before)
        ]
    return entries


class _Parsed(msgspec.Struct, frozen=True):
    """A message by hand. ``changes`` is None where a row's key is missing."""

    letters: tuple[str, ...]
    columns: tuple[str, ...]
    keyless: bool
    changes: tuple[Change, ...]


def _decoded(
    request: Stage,
) -> tuple[list[tuple[int, int, _Parsed]], BadMessageAt | None]:
    """All good messages up to the first bad one, each with its place in the log."""
    good: list[tuple[int, int, _Parsed]] = []
    for place, lane in enumerate(request.lanes):
        partition = lane.source.partition
        pairs = zip(lane.messages.offsets, lane.messages.values, strict=True)
        for index, (offset, value) in enumerate(pairs):
            message = _parsed(value)
            if message is None or (message.keyless and request.route.mode is Mode.UPSERT):
                return good, BadMessageAt(place, index, "it can't be applied")
            good.append((partition, offset, message))
    return good, None


@lru_cache(maxsize=4096)
def _parsed(value: bytes) -> _Parsed | None:
    """A message's changes, None where one of its values can't be read."""
    entries = [_entry(raw) for raw in entries_of(value)]
    good = [entry for entry in entries if entry is not None]
    if len(good) < len(entries):
        return None
    return _Parsed(
        tuple(letter for entry in good for letter in entry.letters),
        tuple(dict.fromkeys(name for entry in good for name in entry.columns)),
        any(entry.keyless for entry in good),
        tuple(change for entry in good for change in entry.changes),
    )


def _entry(value: bytes) -> _Parsed | None:
    message = msgspec.json.decode(value)
    letter = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}[message["type"]]
    data = message["data"]
    if not all(row.get("id", "0").isdigit() for row in data):
        return None
    keyless = any("id" not in row for row in data)
    changes = () if keyless else tuple(_changes(message, letter))
    return _Parsed((letter,) * len(data), tuple(message["mysqlType"]), keyless, changes)


def _changes(message: Any, letter: str) -> Iterator[Change]:
    commit = message.get("_tidb", {}).get("commitTs")
    at = None if commit is None else position_text(commit)
    olds = message["old"] or [{}] * len(message["data"])
    for row, old in zip(message["data"], olds, strict=True):
        key = (int(row["id"]),)
        was = (int(old["id"]),) if "id" in old else None
        if was is not None and at is not None:
            yield Change(was, None, None, at + "d")
        if letter == "D":
            yield Change(key, None, None, at and at + "d")
        else:
            yield Change(key, {**row, "id": key[0]}, was if at is None else None, at and at + "u")

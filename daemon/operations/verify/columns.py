"""Which columns of a target are compared with which of the source's table, and how. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from changes.model.model import Column, TableSchema
from changes.routes.shaping.additions import DELETED, METADATA
from changes.sql.forms import Form
from changes.sql.spark.arrow_texts import natural
from changes.sql.spark.canonical import compared, is_readable, printed
from changes.sql.spark.checksums import TextColumn
from changes.sql.spark.schema import iceberg_type
from changes.sql.spark.words import quote
from databases.base.port import SourceColumn, SourceTable, Texts
from databases.streamed import Streamed

_SCALE = re.compile(r"\(\s*\d+\s*,\s*(-?\d+)\s*\)", re.ASCII)
_DATED = frozenset((Form.DATE, Form.LOCAL, Form.INSTANT))
_NUMBERS = frozenset((Form.DECIMAL, Form.VARIABLE))
_NO_VALUE = frozenset(("NaN", "Infinity", "-Infinity", "infinity", "-infinity"))


class NotComparable(Exception):
    """The table can't be compared: one line that says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A column of both. ``source`` has the form in which it is compared; ``name`` and ``type`` are
    the target's, in the lake's words."""

    source: SourceColumn
    name: str
    type: str

    @property
    def free(self) -> bool:
        """Whether its text may hold any sign: what is stored as text, on either side, may be
        anything."""
        return "string" in (self.type, self.source.type)

    @property
    def stored(self) -> TextColumn:
        """The text of the target's column, in Spark's SQL."""
        form = self.source.form
        assert form is not None
        return TextColumn(printed(form, self.type, quote(self.name), self.scale), self.free)

    @property
    def scale(self) -> int | None:
        """Digits behind the point of the source's decimal, None of other types."""
        found = _SCALE.search(self.source.type)
        if found is None:
            return 0 if self.source.form is Form.DECIMAL else None
        return max(0, int(found[1]))

    def read(self, text: str | None) -> str | None:
        """The source's text as the stream has it: dates of no calendar and numbers that are none
        are null there."""
        if text is None:
            return None
        form = self.source.form
        if form in _DATED and self.source.zero is None and _no_day(text):
            return None
        lost = form in _NUMBERS or form in _DATED
        return None if lost and text in _NO_VALUE else text


@dataclass(frozen=True, slots=True)
class ComparedShape:
    """How two tables are compared. ``notes``: what is not, one line each.

    ``missing``: columns of the source that the target lacks; that is a difference by itself.
    ``whole``: all that the source's rows become is compared. ``deleted``: the target's column that
    says of a row that the source has deleted it; such rows do not count.
    """

    pairs: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    whole: bool = True
    deleted: str | None = None

    @property
    def number(self) -> str | None:
        """The key's first column as BIGINT, in Spark's SQL, where it is one whole number on both
        sides; None where keys are told apart by their hashes alone."""
        first = self.keys[0]
        whole = first.source.form is Form.WHOLE and first.type in ("int", "long")
        return f"CAST({quote(first.name)} AS BIGINT)" if whole else None

    def read(self, texts: Texts) -> Texts:
        """A row of the source as the stream has it."""
        return tuple(pair.read(text) for pair, text in zip(self.pairs, texts, strict=True))


def shape_of(source: SourceTable, streamed: Streamed, target: TableSchema) -> ComparedShape:
    """Match the columns by name, case aside; ``streamed`` has the texts of the stream's values.

    Raises NotComparable.
    """
    stored = {column.name.lower(): column for column in target.columns}
    pairs: list[Pair] = []
    notes = [f"not compared: {line}" for line in streamed.refused]
    missing: list[str] = []
    for column in (each.column for each in streamed.columns):
        there = stored.get(column.name.lower())
        if there is None:
            missing.append(column.name)
            continue
        assert column.form is not None
        type_ = iceberg_type(there.type)
        pair = Pair(replace(column, form=compared(column.form)), there.name, type_)
        if is_readable(compared(column.form), type_):
            pairs.append(pair)
        else:
            notes.append(unlike(pair))
    known = {column.name.lower() for column in source.columns}
    kept = [column.name for column in target.columns if column.name.lower() not in known]
    notes += [f"not compared: column {name}, which the source has not" for name in kept]
    whole = not (streamed.refused or missing or len(pairs) < len(streamed.columns))
    return ComparedShape(tuple(pairs), _keys(source, pairs), tuple(notes), tuple(missing), whole)


def _keys(source: SourceTable, pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    return key_pairs(source, source.keys, {pair.source.name: pair for pair in pairs})


def key_pairs(
    source: SourceTable, keys: Sequence[str], named: Mapping[str, Pair]
) -> tuple[Pair, ...]:
    """The pairs of a key's columns, by their names. Raises NotComparable."""
    if not source.keys:
        raise NotComparable(f"{source.name} has no key: its rows can't be told apart")
    lacking = [name for name in keys if name not in named]
    if lacking:
        raise NotComparable(
            f"{source.name}: its key's column {', '.join(lacking)} can't be compared: the target"
            " lacks it, or stores it as another type"
        )
    found = tuple(named[name] for name in keys)
    if any(pair.source.form is Form.BITS for pair in found):
        raise NotComparable(f"{source.name}: its key is a floating-point number")
    return found


def unlike(pair: Pair) -> str:
    return (
        f"not compared: column {pair.source.name}: {pair.source.type} is stored as {pair.type},"
        " and equal values have no equal text there"
    )


def _no_day(text: str) -> bool:
    return text[5:7] == "00" or text[8:10] == "00"


# Compares columns by the one text that a value of a lake's type has, not by the source's own.

_ALIKE: Mapping[Form, frozenset[Form]] = {
    Form.WHOLE: frozenset((Form.WHOLE, Form.BOOLEAN)),
    Form.BOOLEAN: frozenset((Form.WHOLE, Form.BOOLEAN)),
    Form.DECIMAL: frozenset((Form.DECIMAL, Form.WHOLE, Form.BOOLEAN)),
    Form.BITS: frozenset((Form.BITS,)),
    Form.TEXT: frozenset(
        (Form.TEXT, Form.WHOLE, Form.DECIMAL, Form.VARIABLE, Form.DATE, Form.TIME, Form.JSON,
         Form.ARRAY)
    ),
    Form.HEX: frozenset((Form.HEX, Form.STRIPPED)),
    Form.DATE: frozenset((Form.DATE,)),
    Form.LOCAL: frozenset((Form.LOCAL,)),
    Form.INSTANT: frozenset((Form.INSTANT,)),
}  # fmt: skip
"""By the form of a lake's type those of sources whose texts are the same, a decimal's digits aside.
"""


def prints_alike(pair: Pair) -> bool:
    """Whether a value's text at the source is the one that it has in the target's type."""
    form, other = pair.source.form, natural(pair.type)
    if form not in _ALIKE[other]:
        return False
    return other is not Form.DECIMAL or (pair.scale or 0) == _scale(pair.type)


def shape_by_values(
    source: SourceTable, streamed: Streamed, shown: TableSchema, target: TableSchema
) -> ComparedShape:
    """Match what a route shows of a table with the target's columns. Raises NotComparable."""
    stored = {column.name.lower(): column for column in target.columns}
    added = {column.name: column for column in (*METADATA.values(), DELETED)}
    wanted = [column for column in shown.columns if added.get(column.name) != column]
    here = {column.name.lower() for column in wanted}
    pairs: dict[str, Pair] = {}
    notes = [f"not compared: {line}" for line in streamed.refused]
    missing = [column.name for column in wanted if column.name.lower() not in stored]
    for column in wanted:
        there = stored.get(column.name.lower())
        if there is None:
            continue
        pair = _pair(column, there)
        if prints_alike(pair):
            pairs[column.name] = pair
        else:
            notes.append(unlike(pair))
    for name, there in stored.items():
        if there.name in added and name not in here:
            if there.name != DELETED.name:
                notes.append(f"not compared: column {there.name}, which tells of changes")
        elif name not in here:
            notes.append(f"not compared: column {there.name}, which the source has not")
    whole = not streamed.refused and len(pairs) == len(wanted)
    keys = key_pairs(source, shown.keys, pairs)
    deleted = DELETED.name if DELETED in shown.columns else None
    return ComparedShape(tuple(pairs.values()), keys, tuple(notes), tuple(missing), whole, deleted)


def _pair(column: Column, there: Column) -> Pair:
    words = iceberg_type(column.type)
    return Pair(
        SourceColumn(there.name, words, True, natural(words)), there.name, iceberg_type(there.type)
    )


def _scale(type_: str) -> int:
    return int(type_.rpartition(",")[2].rstrip(") "))

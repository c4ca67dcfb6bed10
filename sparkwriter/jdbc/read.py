"""Rows of a table, as Arrow has them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sparkwriter.jdbc.dialect import rows_of
from sparkwriter.jdbc.session import Session
from sparkwriter.ledgered.made import Row
from sparkwriter.sql.ddl_plan import LakeField
from sparkwriter.sql.schema import arrow_type


def read_table(session: Session, seen: Row) -> pa.Table:
    """The whole table, in the types that it was written in. Raises DbError."""
    fields = seen.table.fields
    names = [chosen(session, field) for field in fields]
    table = session.describe(seen.target)
    assert table is not None
    of = rows_of(session.dialect, seen.target, table)
    rows = session.rows(f"SELECT {', '.join(names)} FROM {of}")
    columns = zip(*rows, strict=True) if rows else [() for _ in fields]
    arrays = [as_stored(values, field) for field, values in zip(fields, columns, strict=True)]
    return pa.table(arrays, [field.name for field in fields])


def chosen(session: Session, field: LakeField, of: str = "") -> str:
    """A column in a SELECT, as ``as_stored`` takes its values."""
    # MySQL prints fewer digits of a FLOAT than it keeps. (A sum would lose the sign of -0.)
    exact = "" if session.transactional_ddl or field.type != "float" else " * 1e0"
    return of + session.dialect.quote(field.name) + exact


def as_stored(values: Iterable[object], field: LakeField) -> pa.Array:
    """Values of a column that was chosen so."""
    given = _truths(values) if field.type == "boolean" else list(values)
    return pa.array(given, arrow_type(field.type))


def _truths(values: Iterable[object]) -> list[bool | None]:
    """MySQL's are numbers."""
    return [None if value is None else bool(value) for value in values]

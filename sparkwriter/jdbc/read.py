"""All rows of a table, as Arrow has them. For who compares."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sparkwriter.jdbc.dialect import target_name
from sparkwriter.jdbc.session import Session
from sparkwriter.ledgered.made import Row
from sparkwriter.sql.schema import arrow_type


def read_table(session: Session, seen: Row) -> pa.Table:
    """The whole table, in the types that it was written in. Raises DbError."""
    fields, quote = seen.table.fields, session.dialect.quote
    # MySQL prints fewer digits of a FLOAT than it keeps.
    exact = "" if session.transactional_ddl else " + 0e0"
    names = [quote(field.name) + (exact if field.type == "float" else "") for field in fields]
    table = target_name(session.dialect, seen.target)
    rows = session.rows(f"SELECT {', '.join(names)} FROM {table}")
    columns = zip(*rows, strict=True) if rows else [() for _ in fields]
    arrays = [
        pa.array(_truths(values) if field.type == "boolean" else values, arrow_type(field.type))
        for field, values in zip(fields, columns, strict=True)
    ]
    return pa.table(arrays, [field.name for field in fields])


def _truths(values: Iterable[object]) -> list[bool | None]:
    """MySQL's are numbers."""
    return [None if value is None else bool(value) for value in values]

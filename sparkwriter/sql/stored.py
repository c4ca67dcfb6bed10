"""What a table stores of some keys: they go into the stage, and the server joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import arrow_type
from databases.base.session import transaction
from sparkwriter.kit.marks_table.table_description import Row
from sparkwriter.kit.store import FOUND
from sparkwriter.sql.base.session import STAGE, LoadedColumn, Session, rows_of
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.base.values import Texts, plain

# Rows of a table, as Arrow has them.


def read_table(session: Session, seen: Row) -> pa.Table:
    """The whole table, in the types that it was written in. Raises DatabaseError."""
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


_PLACE = "__binlogd_n"


def stored_rows(
    session: Session, seen: Row, table: DbTable, keys: pa.Table, columns: Sequence[str]
) -> pa.Table:
    """See ``sparkwriter.kit.store.TableStore.read_rows``. Raises DatabaseError, TargetRefused."""
    dialect, quote = session.dialect, session.dialect.quote
    texts = Texts(dialect, or_null=False)
    places = pa.array(range(keys.num_rows), pa.int64())
    loaded = [LoadedColumn(_PLACE, places.cast(pa.string()))]
    types, terms = [(_PLACE, "bigint")], list[str]()
    for name in keys.column_names:
        column = table.find(name)
        assert column is not None
        values = keys[name].combine_chunks()
        binary = pa.types.is_binary(plain(values).type)
        text = texts.of(name, values, column, True)
        loaded.append(LoadedColumn(column.name, text, binary=binary))
        types.append((column.name, column.type))
        left, right = f"t.{quote(column.name)}", f"s.{quote(column.name)}"
        null = bool(values.null_count)
        terms.append(dialect.same(left, right) if null else f"{left} = {right}")
    by_name = {field.name.lower(): field for field in seen.table.fields}
    fields = [by_name[name.lower()] for name in columns]
    wanted = ", ".join([f"s.{quote(_PLACE)}", *(chosen(session, field, "t.") for field in fields)])
    with transaction(session):
        for statement in dialect.stage(types, [name for name, _ in types[1:]]):
            session.run(statement)
        session.load(STAGE, loaded)
        for statement in dialect.filled():
            session.run(statement)
        rows = session.rows(
            f"SELECT {wanted} FROM {STAGE} AS s JOIN {rows_of(dialect, seen.target, table)} AS t"
            f" ON {' AND '.join(terms)}"
        )
    at = {row[0]: row[1:] for row in rows}
    found: dict[str, pa.Array] = {FOUND: pa.array([n in at for n in range(keys.num_rows)])}
    nothing = (None,) * len(fields)
    for place, (name, field) in enumerate(zip(columns, fields, strict=True)):
        values = [at.get(n, nothing)[place] for n in range(keys.num_rows)]
        found[name] = as_stored(values, field)
    return pa.table(found)


def has_null(session: Session, target: TargetName, table: DbTable, column: str) -> bool:
    """Whether a row has a null there; a column that is not there has nothing else."""
    found = table.find(column)
    if found is None:
        return True
    name, quote = rows_of(session.dialect, target, table), session.dialect.quote
    text = f"SELECT 1 FROM {name} WHERE {quote(found.name)} IS NULL LIMIT 1"
    return bool(session.rows(text))


def undecidable() -> TargetRefused:
    """Why nulls that may have been values are not read for a filter."""
    return TargetRefused(
        "rows lack columns, and what is stored of them may have become null "
        '(unstorable = "null"), by which a filter can\'t decide: have the source send '
        "whole rows (binlog_row_image = FULL, REPLICA IDENTITY FULL)"
    )

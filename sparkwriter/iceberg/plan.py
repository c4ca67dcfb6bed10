"""From a staged batch to the SQL text that writes it. Pure: no Spark, no catalog.

The texts rely on Spark's defaults for string literals (backslash escapes) and do not rely on
``${...}`` being left alone: every sign that Spark could read as more than itself is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from actors.contract.writes import StagedBatch
from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP, KeyBound, Mode
from changes.sql.spark.guards import NOT_OLDER, Guard, newer_than_tombstones
from changes.sql.spark.schema import LakeColumn, arrow_type, iceberg_type, spark_type
from changes.sql.spark.words import dotted, quote, string_literal

TARGET = "`target`"
"""Stands in a text for the table that it writes, which has no name: ``iceberg_sql``."""


_FOUND = "`__binlogd_found`"
"""Of a row that was read from the target: there was one."""

_NULLS: Mapping[str, str] = {}
"""No column has anything for rows that lack it."""


def literal(value: object, type_: str) -> str | None:
    """A value as a typed literal of an Iceberg type, None where it has no exact one.

    Floating point has none (a bound of NaN or -0.0 prunes wrongly), neither have None, a time
    with a zone for a column without, and the reverse.
    """
    match value:
        case bool():
            return str(value).lower() if type_ == "boolean" else None
        case int() if type_ in {"int", "long"} or type_.startswith("decimal"):
            text = str(value)
        case Decimal() if type_.startswith("decimal") and _fits(value, type_):
            text = f"{value:f}"
        case str() if type_ == "string":
            return string_literal(value)
        case bytes() if type_ == "binary":
            return f"X'{value.hex()}'"
        case datetime() if type_ == "timestamp" and value.tzinfo is None:
            text = value.isoformat(sep=" ")
        case datetime() if type_ == "timestamptz" and value.tzinfo is not None:
            text = value.astimezone(UTC).isoformat(sep=" ")
        case date() if type_ == "date" and not isinstance(value, datetime):
            text = value.isoformat()
        case _:
            return None
    return f"CAST('{text}' AS {spark_type(type_)})"


def _fits(value: Decimal, type_: str) -> bool:
    """Whether a cast to the type keeps every digit behind the point."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= arrow_type(type_).scale


def read_schema(staged: pa.Schema) -> str:
    """The staged file's columns as Spark's DDL text: read by it, no job infers the types."""
    return ", ".join(
        f"{quote(field.name)} {spark_type(iceberg_type(field.type))}" for field in staged
    )


def rows_sql(
    batch: StagedBatch,
    columns: Sequence[LakeColumn],
    staged: Sequence[str],
    source: str,
    guard: Guard | None = None,
    fillings: Mapping[str, str] = _NULLS,
) -> str:
    """The rows that a batch adds to a target in which nothing can match: its columns, in order.

    ``columns`` are the target's after the schema steps, ``staged`` the names in the file,
    ``source`` the quoted identifier of what is read. What a row lacks of the target's columns is
    null, or what ``fillings`` has for it: SQL, by the columns' names in small letters. With a
    ``guard`` rows that are older than what the target knows of their key do nothing.
    """
    given = {name.lower(): name for name in staged}
    if guard is not None:
        source = _not_deleted_later(batch, columns, given, guard, source)
    values = [
        f"{value} AS {quote(c.name)}" for c, value in _values(batch, columns, given, fillings)
    ]
    kept = "" if batch.mode is Mode.APPEND else f"\nWHERE s.{quote(OP)} = 'U'"
    return f"SELECT {', '.join(values)}\nFROM {source} s{kept}"


def removal_sql(
    batch: StagedBatch, columns: Sequence[LakeColumn], staged: Sequence[str], source: str
) -> str:
    """The statement that deletes the stored rows of the batch's keys; reads key columns only.

    Each batch fits into memory, so its keys are sent to where the target is read: nothing of the
    target moves but what is deleted.
    """
    given = {name.lower(): name for name in staged}
    keys = ", ".join(key_columns(batch, columns, given).values())
    return (
        f"MERGE INTO {TARGET} t USING (SELECT /*+ BROADCAST(k) */ {keys} FROM {source} k) s\n"
        f"ON {_match(batch, columns, given)}\nWHEN MATCHED THEN DELETE"
    )


def merge_sql(
    batch: StagedBatch,
    columns: Sequence[LakeColumn],
    staged: Sequence[str],
    source: str,
    guard: Guard | None = None,
    fillings: Mapping[str, str] = _NULLS,
) -> str:
    """The one statement that merges the batch into the target, which ``TARGET`` stands for.

    Parameters as of ``rows_sql``. Columns of the target that the file lacks keep their value on
    update and are as in ``rows_sql`` on insert; in a row that came from another key they take the
    value of the stored row of that.
    """
    given = {name.lower(): name for name in staged}
    newer = "" if guard is None else f" AND {NOT_OLDER}"
    if guard is not None:
        source = _not_deleted_later(batch, columns, given, guard, source)
    if FROM in given and (lacking := _lacking(batch, columns, given)):
        source = _with_origins(batch, columns, given, source)
        batch = replace(batch, partial=tuple(given.get(name.lower(), name) for name in lacking))
        given |= {name.lower(): name for name in lacking if name.lower() not in given}
    clauses = [
        f"MERGE INTO {TARGET} t USING {source} s",
        f"ON {_match(batch, columns, given)}",
        f"WHEN MATCHED AND s.{quote(OP)} <> 'U'{newer} THEN DELETE",
    ]
    if sets := _updates(batch, columns, given):
        living = "" if guard is None else f" AND s.{quote(OP)} = 'U'{newer}"
        clauses.append(f"WHEN MATCHED{living} THEN UPDATE SET {', '.join(sets)}")
    names = ", ".join(quote(column.name) for column in columns)
    values = ", ".join(value for _, value in _values(batch, columns, given, fillings))
    clauses.append(
        f"WHEN NOT MATCHED AND s.{quote(OP)} = 'U' THEN INSERT ({names}) VALUES ({values})"
    )
    return "\n".join(clauses)


def _values(
    batch: StagedBatch,
    columns: Sequence[LakeColumn],
    given: Mapping[str, str],
    fillings: Mapping[str, str],
) -> Iterator[tuple[LakeColumn, str]]:
    """Each column of the target with what a new row has there."""
    partial = {name.lower(): name for name in batch.partial}
    for column in columns:
        lower = column.name.lower()
        value, filling = f"s.{quote(given.get(lower, ''))}", fillings.get(lower, "NULL")
        if lower not in given:
            value = filling
        elif lower in partial and lower in fillings:
            has = f"s.{quote(HAS_PREFIX + partial[lower])}"
            value = f"CASE WHEN {has} THEN {value} ELSE {filling} END"
        yield column, value


def _not_deleted_later(
    batch: StagedBatch,
    columns: Sequence[LakeColumn],
    given: Mapping[str, str],
    guard: Guard,
    source: str,
) -> str:
    key, ranges = key_columns(batch, columns, given), _ranges(batch, columns)
    return newer_than_tombstones(guard, key, ranges, source)


def key_columns(
    batch: StagedBatch, columns: Sequence[LakeColumn], given: Mapping[str, str]
) -> dict[str, str]:
    """The target's key columns and those of the file, quoted.

    ``given`` maps lower-case names to the file's.
    """
    keys = {key.lower() for key in batch.schema.keys}
    return {
        quote(column.name): quote(given[column.name.lower()])
        for column in columns
        if column.name.lower() in keys
    }


def _ranges(batch: StagedBatch, columns: Sequence[LakeColumn]) -> list[str]:
    """The batch's bounds as conditions on ``t``."""
    bounds = {bound.column.lower(): bound for bound in batch.bounds}
    found = [between(column, bounds.get(column.name.lower())) for column in columns]
    return [term for term in found if term is not None]


def _lacking(
    batch: StagedBatch, columns: Sequence[LakeColumn], given: Mapping[str, str]
) -> list[str]:
    """The target's columns that some row of the file does not carry."""
    partial = {name.lower() for name in batch.partial}
    return [
        column.name
        for column in columns
        if column.name.lower() not in given or column.name.lower() in partial
    ]


def _with_origins(
    batch: StagedBatch,
    columns: Sequence[LakeColumn],
    given: Mapping[str, str],
    source: str,
) -> str:
    """The file, in which rows that came from another key have all columns.

    What they lack is read from the target as its catalog has it, at that key: should that no
    longer be what the write began with, the write won't be published. Should it hold no such
    row, as where the change is applied again after a reset, the row of the new key keeps what it
    has: it came from there the first time. Without one it is null.
    """
    partial = {name.lower() for name in batch.partial}
    moved = f"o.{_FOUND} IS NOT NULL"
    chosen = [f"s.{quote(OP)}"]
    for column in columns:
        lower, name = column.name.lower(), given.get(column.name.lower(), column.name)
        has = quote(HAS_PREFIX + name)
        if lower not in given:
            chosen += [f"o.{quote(column.name)}", f"{moved} AS {has}"]
        elif lower in partial:
            own = f"s.{quote(name)}"
            kept = f"CASE WHEN s.{has} THEN {own} ELSE o.{quote(column.name)} END"
            chosen += [f"{kept} AS {quote(name)}", f"s.{has} OR {moved} AS {has}"]
        else:
            chosen.append(f"s.{quote(name)}")
    same = [
        f"o.{quote(column.name)} <=> s.{quote(FROM_PREFIX + given[column.name.lower()])}"
        for column in columns
        if column.name.lower() in {key.lower() for key in batch.schema.keys}
    ]
    return (
        f"(\n  SELECT {', '.join(chosen)}\n  FROM {source} s\n"
        f"  LEFT JOIN (SELECT *, true AS {_FOUND} FROM {dotted(*batch.target)}) o"
        f" ON {' AND '.join([f's.{quote(FROM)} IS NOT NULL', *same])}\n)"
    )


def _match(batch: StagedBatch, columns: Sequence[LakeColumn], given: Mapping[str, str]) -> str:
    """The keys are equal, and lie within the batch's bounds, so that files are pruned.

    A bound exists only for a key part without nulls; a part without one may hold them and is
    compared by ``<=>``.
    """
    bounds = {bound.column.lower(): bound for bound in batch.bounds}
    keys = {key.lower() for key in batch.schema.keys}
    terms: list[str] = []
    ranges: list[str] = []
    for column in columns:
        lower = column.name.lower()
        if lower not in keys:
            continue
        bounded = between(column, bounds.get(lower))
        equals = "<=>" if bounded is None else "="
        terms.append(f"t.{quote(column.name)} {equals} s.{quote(given[lower])}")
        if bounded is not None:
            ranges.append(bounded)
    return " AND ".join(terms + ranges)


def between(column: LakeColumn, bound: KeyBound | None) -> str | None:
    """A bound of a key as a condition on ``t``, None where it has no exact literals."""
    if bound is None:
        return None
    lower, upper = literal(bound.lower, column.type), literal(bound.upper, column.type)
    if lower is None or upper is None:
        return None
    return f"t.{quote(column.name)} BETWEEN {lower} AND {upper}"


def _updates(
    batch: StagedBatch, columns: Sequence[LakeColumn], given: Mapping[str, str]
) -> list[str]:
    keys = {key.lower() for key in batch.schema.keys}
    partial = {name.lower(): name for name in batch.partial}
    sets: list[str] = []
    for column in columns:
        lower = column.name.lower()
        if lower in keys or lower not in given:
            continue
        name, value = quote(column.name), f"s.{quote(given[lower])}"
        if lower in partial:
            has = f"s.{quote(HAS_PREFIX + partial[lower])}"
            value = f"CASE WHEN {has} THEN {value} ELSE t.{name} END"
        sets.append(f"t.{name} = {value}")
    return sets

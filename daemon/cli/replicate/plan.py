"""What ``binlogd replicate`` is about to do, as lines: tables, types, what is left out, what lacks.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from collector.checks.seen import FORMAT, SeenSource, SeenTable
from daemon.operations.load.estimates import SECOND_ROWS, shown_bytes, shown_time
from databases.base.findings import Finding
from databases.base.port import SourceTable
from databases.base.url import Kind
from databases.streamed import as_streamed
from settings.counted import counted

MOST_TABLES = 40
"""Tables that are listed; of more, the largest."""

MOST_EXAMPLES = 3

START_S = 30
"""Broker, collector and Spark, side by side, until the first row is read."""

_SAME: Mapping[str, frozenset[str]] = {
    "int": frozenset(("int", "integer", "mediumint", "smallint", "tinyint")),
    "long": frozenset(("bigint",)),
    "float": frozenset(("float", "real")),
    "double": frozenset(("double", "double precision")),
    "boolean": frozenset(("boolean",)),
    "string": frozenset((
        "char", "varchar", "text", "tinytext", "mediumtext", "longtext", "character",
        "character varying",
    )),
    "binary": frozenset((
        "binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "bytea",
    )),
    "date": frozenset(("date",)),
    "timestamp": frozenset(("datetime", "timestamp without time zone")),
    "timestamptz": frozenset(("timestamp", "timestamp with time zone")),
}  # fmt: skip
"""By the stored type, the source's types that mean the same. A decimal does, too, with its digits.
Shorter integers than the stored one, and texts with a length, are the same values."""


def changed_types(tables: Sequence[SourceTable], kind: Kind) -> dict[tuple[str, str], list[str]]:
    """By the source's type and the stored one the columns where the two are not the same."""
    found: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        for one in as_streamed(table, kind, FORMAT, collected=True).columns:
            if not _is_same(one.column.type.lower(), one.type):
                column = f"{table.name}.{one.column.name}"
                found.setdefault((_short(one.column.type), one.type), []).append(column)
    return found


def _is_same(source: str, stored: str) -> bool:
    words, _, sizes = source.partition("(")
    digits, _, after = sizes.partition(")")
    base = " ".join((words + after).split())
    if stored.startswith("decimal") and base in ("decimal", "numeric"):
        return stored.replace(" ", "") == f"decimal({digits.replace(' ', '')})"
    return base in _SAME.get(stored, frozenset())


def _short(type_: str) -> str:
    """Labels of an enumeration are nobody's concern here."""
    base = type_.partition("(")[0]
    return f"{base}(…)" if base.lower() in ("enum", "set") else type_


def lines(seen: SeenSource, kind: Kind, source: str, into: str) -> Iterator[str]:
    """The whole plan."""
    followed = [one for one in seen.tables if one.is_followed]
    tables = [one.table for one in followed if one.table is not None]
    yield f"source: {source}"
    yield f"into:   {into}"
    yield from _tables(tables)
    yield from _left_out([one for one in seen.tables if not one.is_followed])
    yield from _types(changed_types(tables, kind))
    yield from _told("worth knowing", _warnings(seen, followed))
    yield from _told("what the source lacks", [one for one in seen.server if one.wrong])


def _tables(tables: Sequence[SourceTable]) -> Iterator[str]:
    rows, size = sum(one.rows for one in tables), sum(one.bytes for one in tables)
    yield (
        f"tables: {len(tables):,} to follow, about {counted(rows, 'row')}, {shown_bytes(size)}; "
        f"equal in about {shown_time(START_S + rows / SECOND_ROWS)}"
    )
    largest = sorted(tables, key=lambda one: -one.rows)[:MOST_TABLES]
    width = max((len(str(one.name)) for one in largest), default=0)
    for one in largest:
        key = ", ".join(one.keys)
        many = counted(one.rows, "row")
        yield f"  {one.name!s:{width}}  {many:>18}  {shown_bytes(one.bytes):>9}  {key}"
    if len(tables) > MOST_TABLES:
        yield f"  and {counted(len(tables) - MOST_TABLES, 'smaller one')}"


def _left_out(tables: Sequence[SeenTable]) -> Iterator[str]:
    if tables:
        yield f"left out: {counted(len(tables), 'table')}, until this is mended:"
    for one in tables:
        yield from _finding([each for each in one.findings if each.wrong])


def _types(changed: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[str]:
    if changed:
        yield "types that change (docs/types.md), by the lake's names:"
    for (source, stored), columns in sorted(changed.items()):
        some = ", ".join(columns[:MOST_EXAMPLES])
        more = f" and {len(columns) - MOST_EXAMPLES:,} more" * (len(columns) > MOST_EXAMPLES)
        yield f"  {source} -> {stored}: {some}{more}"


def _warnings(seen: SeenSource, followed: Sequence[SeenTable]) -> list[Finding]:
    of_tables = [one for table in followed for one in table.findings]
    return [one for one in (*seen.server, *of_tables) if not one.wrong]


def _told(title: str, found: Sequence[Finding]) -> Iterator[str]:
    if found:
        yield f"{title}:"
        yield from _finding(found)


def _finding(found: Sequence[Finding]) -> Iterator[str]:
    for one in found:
        yield f"  {one.text}"
        yield from (f"      {statement};" for statement in one.mend)


def document(seen: SeenSource, kind: Kind) -> dict[str, object]:
    """The same as one document."""
    followed = [one.table for one in seen.tables if one.is_followed and one.table is not None]
    return {
        "tables": [
            {"table": str(one.name), "rows": one.rows, "bytes": one.bytes, "keys": list(one.keys)}
            for one in followed
        ],
        "left_out": [
            {"table": str(one.name), "why": _plain(each for each in one.findings if each.wrong)}
            for one in seen.tables
            if not one.is_followed
        ],
        "types": [
            {"source": source, "stored": stored, "columns": columns}
            for (source, stored), columns in sorted(changed_types(followed, kind).items())
        ],
        "lacks": _plain(one for one in seen.server if one.wrong),
        "warnings": _plain(_warnings(seen, [one for one in seen.tables if one.is_followed])),
    }


def _plain(found: Iterator[Finding] | Sequence[Finding]) -> list[dict[str, object]]:
    return [{"text": one.text, "statements": list(one.mend)} for one in found]

"""What PostgreSQL's catalog says of a table."""

from __future__ import annotations

import re
from typing import Any

from actors.contract.ports import TargetRefused
from sparkwriter.jdbc.tables import DbColumn, DbTable

TABLE = """
SELECT c.relkind, (
  SELECT json_agg(json_build_array(
    a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.atthasdef,
    a.attgenerated <> '' OR a.attidentity = 'a', y.typtype, coalesce(l.collisdeterministic, true),
    CASE WHEN a.attcollation <> y.typcollation THEN quote_ident(s.nspname) || '.'
      || quote_ident(l.collname) END, a.attidentity <> '') ORDER BY a.attnum)
  FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_namespace s ON s.oid = l.collnamespace
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
), (
  SELECT json_agg(json_build_array(k.conname, k.contype, k.condeferrable, k.confdeltype,
    k.confupdtype, (SELECT json_agg(a.attname ORDER BY o.at) FROM unnest(k.conkey)
      WITH ORDINALITY AS o(num, at) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = o.num)
  )) FROM pg_constraint k WHERE k.conrelid = c.oid
), c.oid, c.relpersistence = 'u', row_security_active(c.oid),
EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
"""One row: the kind, the columns, the constraints, the oid, whether it is unlogged, has row
security, has rules. Parameters: schema and name."""

REFERENCED = """
SELECT 1 FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND k.conrelid <> k.confrelid LIMIT 1
"""

TRIGGERS = """
SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND NOT t.tgisinternal ORDER BY 1
"""

_UNSAFE = (
    "it is UNLOGGED, and a crash of the server empties it: SET LOGGED",
    "its row security hides rows from this user: let the user have BYPASSRLS",
    "it has rules, which may write something else: drop them",
)

_EXACT = {
    "boolean": "boolean",
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "double precision": "double",
    "bytea": "binary",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp(6) without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "timestamp(6) with time zone": "timestamptz",
}
_TEXTS = ("text", "character varying", "json", "jsonb", "uuid", "xml", "time without time zone")
_KEY_TEXTS = ("text", "character varying", "uuid")


def table_of(row: tuple[Any, ...] | None) -> DbTable | None:
    """The table that a row of ``TABLE`` tells of. Raises TargetRefused for what is none."""
    if row is None:
        return None
    kind, columns, constraints, oid, *unsafe = row
    if kind not in ("r", "p"):
        raise TargetRefused("there is a view, or something else that is no table, of that name")
    found = constraints or []
    (primary_name, primary), *_ = [
        *((name, tuple(keys)) for name, type_, _, _, _, keys in found if type_ == "p"),
        ("", ()),
    ]
    acting = tuple(
        name
        for name, type_, _, on_delete, on_update, _ in found
        if type_ == "f" and not {on_delete, on_update} <= {"a", "r"}
    )
    return DbTable(
        tuple(_column(*column) for column in columns or []),
        primary,
        primary_name,
        acting=acting,
        deferrable=any(deferrable for _, _, deferrable, _, _, _ in found),
        identity=str(oid),
        unsafe=tuple(why for why, here in zip(_UNSAFE, unsafe, strict=True) if here),
        only=kind == "r",
    )


def _column(
    name: str,
    type_: str,
    nullable: bool,
    default: bool,
    generated: bool,
    kind: str,
    deterministic: bool,
    collation: str | None,
    identity: bool,
) -> DbColumn:
    lake, refused = _lake(type_, kind)
    plain, length = _length(type_)
    merges = ""
    if lake == "string" and plain not in _KEY_TEXTS and kind != "e":
        merges = f"is {type_}, in which different texts may be equal: make it text"
    elif not deterministic:
        merges = "has a collation for which different texts may be equal: give it a deterministic"
    return DbColumn(
        name,
        type_ if collation is None else f"{type_} COLLATE {collation}",
        lake,
        refused,
        nullable=nullable,
        default=default or identity,
        generated=generated,
        max_chars=length if plain == "character varying" else None,
        merges=merges,
    )


def _lake(type_: str, kind: str) -> tuple[str | None, str]:
    """The lake's type that it holds exactly, or why there is none."""
    plain, length = _length(type_)
    if type_ in _EXACT:
        return _EXACT[type_], ""
    if kind == "e" or (plain in _TEXTS and (plain == "character varying" or length is None)):
        return "string", ""
    if found := re.fullmatch(r"numeric\(([0-9]+),([0-9]+)\)", type_):
        if int(found[1]) <= 38:
            return f"decimal({found[1]}, {found[2]})", ""
        return None, "decimals have up to 38 digits: make it numeric(38,…), or text"
    if plain == "numeric":
        return None, "give it precision and scale, such as numeric(38,10)"
    if plain in ("timestamp", "time"):
        return None, "it rounds: leave out its precision, or make it 6"
    if plain == "character":
        return None, "it pads with spaces: make it text"
    return None, "make it text"


def _length(type_: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"([^(]+?)\(([0-9]+)\)(.*)", type_)
    return (type_, None) if found is None else (found[1], int(found[2]))

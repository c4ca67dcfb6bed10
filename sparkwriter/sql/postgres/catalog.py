"""What PostgreSQL's catalog says of a table."""

from __future__ import annotations

import re
from typing import Any

from changes.model.errors import TargetRefused
from sparkwriter.sql.base.tables import DbColumn, DbTable, runs_before

TABLE = """
WITH c AS (
  SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %s AND c.relname = %s
), part AS (
  SELECT p.* FROM pg_class p
  WHERE p.oid IN (SELECT oid FROM c UNION SELECT relid FROM c, pg_partition_tree(c.oid))
)
SELECT c.relkind, (
  SELECT jsonb_agg(jsonb_build_array(
    a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.atthasdef,
    a.attgenerated <> '' OR a.attidentity = 'a', y.typtype, coalesce(l.collisdeterministic, true),
    CASE WHEN a.attcollation <> y.typcollation THEN quote_ident(s.nspname) || '.'
      || quote_ident(l.collname) END, a.attidentity <> '') ORDER BY a.attnum)
  FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_namespace s ON s.oid = l.collnamespace
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
), (
  SELECT jsonb_agg(jsonb_build_array(k.conname, k.contype, k.condeferrable, k.confdeltype,
    k.confupdtype, (SELECT jsonb_agg(a.attname ORDER BY o.at) FROM unnest(k.conkey)
      WITH ORDINALITY AS o(num, at) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = o.num)
  )) FROM pg_constraint k WHERE k.conrelid = c.oid
), c.oid, (
  SELECT jsonb_agg(DISTINCT jsonb_build_array(t.tgname, t.tgtype, (
    SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.oid = t.tgfoid AND l.lanname NOT IN ('internal', 'c') AND NOT EXISTS
      (SELECT 1 FROM unnest(p.proconfig) AS s(one) WHERE starts_with(s.one, 'search_path='))
  ))) FROM pg_trigger t
  WHERE t.tgrelid IN (SELECT oid FROM part) AND NOT t.tgisinternal AND t.tgenabled <> 'D'
), EXISTS (SELECT 1 FROM part WHERE relpersistence = 'u'), row_security_active(c.oid),
EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class IN (SELECT oid FROM part)),
EXISTS (SELECT 1 FROM part WHERE relkind = 'f'),
EXISTS (SELECT 1 FROM part WHERE relam NOT IN (0, 2))
FROM c
"""
"""One row: the kind, the columns, the constraints, the oid, the triggers, and what ``_UNSAFE``
names, of the table or a partition of it (access method 2 is heap). Parameters: schema, name."""

REFERENCED = """
SELECT 1 FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND k.conrelid <> k.confrelid LIMIT 1
"""

_UNSAFE = (
    "it is UNLOGGED, and a crash of the server empties it: SET LOGGED",
    "its row security hides rows from this user: let the user have BYPASSRLS",
    "it has rules, which may write something else: drop them",
    "a partition of it is a foreign table, which is not of its transaction: detach it",
    "its access method is not heap, and was never tried: SET ACCESS METHOD heap",
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
    "json": "string",
}
"""Types that give back what was written; of texts those of ``_TEXTS`` and enums, too. Whatever is
not here is refused: the tests' fuzz (``tests/own_tables``) has tried these alone."""

_BEFORE_ROW, _INSTEAD = 0b11, 0b1000000
"""In a trigger's type."""

_TEXTS = ("text", "character varying")

_WHY = {
    "uuid": "it stores other letters than were written",
    "xml": "it stores other text than was written",
    "jsonb": "it stores other text than was written: make it json",
    "time without time zone": "it rounds what is longer",
    "time with time zone": "it rounds what is longer",
    "timestamp": "it rounds: leave out its precision, or make it 6",
    "character": "it pads with spaces",
    "numeric": "it has any scale: give it precision and scale, such as numeric(38,10)",
}
"""Of types that look as if they held a value and don't: what they do, or a way out."""


def table_of(row: tuple[Any, ...] | None) -> DbTable | None:
    """The table that a row of ``TABLE`` tells of. Raises TargetRefused for what is none."""
    if row is None:
        return None
    kind, columns, constraints, oid, triggers, *unsafe = row
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
        unsafe=(
            *(why for why, here in zip(_UNSAFE, unsafe, strict=True) if here),
            *(runs_before(name) for name, type_, _ in triggers or [] if _acts(type_)),
        ),
        only=kind == "r",
        fires=tuple(
            _follows(name, function) for name, type_, function in triggers or [] if not _acts(type_)
        ),
    )


def _follows(name: str, function: str | None) -> str:
    """A trigger; ``function``: its own, if that has no setting of search_path."""
    if function is None:
        return name
    return (
        f"{name} (what its function {function} names without a schema is looked for in pg_catalog"
        f" alone: ALTER FUNCTION {function} SET search_path = …)"
    )


def _acts(type_: int) -> bool:
    """Whether a trigger decides what is written of a row."""
    return type_ & _BEFORE_ROW == _BEFORE_ROW or bool(type_ & _INSTEAD)


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
    if type_ == "json":
        merges = "is json, of which there can be no key: make it text"
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
    plain, _ = _length(type_)
    if type_ in _EXACT:
        return _EXACT[type_], ""
    if kind == "e" or (kind == "b" and (type_ in _TEXTS or plain == "character varying")):
        return "string", ""
    if found := re.fullmatch(r"numeric\(([0-9]+),([0-9]+)\)", type_):
        if int(found[2]) <= int(found[1]) <= 38:
            return f"decimal({found[1]}, {found[2]})", ""
        return None, "decimals have up to 38 digits: make it numeric(38,…), or text"
    if kind == "d":
        return None, "it is a domain: give the column the type that it is made of, or make it text"
    why = _WHY.get(type_) or _WHY.get(plain)
    return None, why if why and ": " in why else f"{why or 'it was never tried'}: make it text"


def _length(type_: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"([^(]+?)\(([0-9]+)\)(.*)", type_)
    return (type_, None) if found is None else (found[1], int(found[2]))


# What of PostgreSQL hangs on a table, and would stay with it when another one takes its name.

DEPENDENTS = """
WITH t AS (
  SELECT c.oid, c.reltype, c.relkind, c.relispartition FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
), own AS (
  SELECT 'pg_class'::regclass AS classid, t.oid AS objid FROM t
  UNION ALL SELECT 'pg_type'::regclass, y.oid FROM t
    JOIN pg_type y ON t.reltype IN (y.oid, y.typelem)
  UNION ALL SELECT 'pg_class'::regclass, d.objid FROM t
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid
    AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
)
SELECT DISTINCT coalesce(pg_describe_object('pg_class'::regclass, w.ev_class, 0),
  pg_describe_object(d.classid, d.objid, d.objsubid))
FROM own JOIN pg_depend d ON d.refclassid = own.classid AND d.refobjid = own.objid
  AND d.deptype = 'n'
LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
WHERE NOT EXISTS (
  SELECT 1 FROM t JOIN pg_depend o ON o.classid = d.classid AND o.objid = d.objid
  AND o.refclassid = 'pg_class'::regclass AND o.refobjid = t.oid AND o.deptype IN ('a', 'i')
) AND NOT EXISTS (SELECT 1 FROM t WHERE w.ev_class = t.oid)
UNION SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0)
  FROM t JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = t.oid AND k.conrelid <> t.oid
UNION SELECT 'inheritance of ' || i.inhrelid::regclass || ' from ' || i.inhparent::regclass
  FROM t JOIN pg_inherits i ON t.oid IN (i.inhrelid, i.inhparent)
UNION SELECT 'its partitioning' FROM t WHERE relkind = 'p'
ORDER BY 1
"""
"""One text a row. Parameters: schema and name."""

RIGHTS = """
SELECT n.nspname IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'CREATE'), false)
    OR (n.oid IS NULL AND has_database_privilege(current_database(), 'CREATE')),
  c.oid IS NULL OR pg_has_role(c.relowner, 'USAGE'), current_user, pg_get_userbyid(c.relowner),
  c.oid IS NULL OR has_schema_privilege(c.relowner, n.oid, 'CREATE')
    OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
FROM (SELECT %s::text AS schema, %s::text AS name) AS asked
LEFT JOIN pg_namespace n ON n.nspname = asked.schema
LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = asked.name
"""
"""One row: whether the schema is there, may be made or filled, whether the table is ours, who we
are, whose it is, and whether that one may be given a table there.
Parameters: schema and name."""

HELD = """
SELECT DISTINCT a.pid, a.usename, extract(epoch FROM clock_timestamp() - a.xact_start)::bigint
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE n.nspname = %s AND c.relname = %s AND l.granted AND a.pid <> pg_backend_pid()
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND a.xact_start < clock_timestamp() - interval '30 s' ORDER BY 3 DESC
"""
"""Transactions that have had a lock on the table for 30 s or more: the process, whose it is, its
seconds. Parameters: schema and name."""

"""What of PostgreSQL hangs on a table, and would stay with it when another one takes its name.

The catalog of dependencies names all that a DROP would be refused for, also what comes with later
versions of the server. What the table itself has is taken over, or named (``taken_over.py``).
"""

from __future__ import annotations

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

"""What a loaded table takes over from the one whose name it gets, in PostgreSQL.

Owner, rights, row security, comments, storage options, statistics targets, replica identity and
publications are the table's, not the name's: without them readers were locked out, or saw rows that
are not for them, and subscribers got nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

from changes.model.model import TargetName
from changes.sql.quoted import quoted
from sparkwriter.sql.base.session import Session, target_name

_OID = "(SELECT {0}.oid FROM pg_class {0} JOIN pg_namespace n ON n.oid = {0}.relnamespace"
_OLD = _OID.format("c") + " WHERE n.nspname = %s AND c.relname = %s)"

_WHO = "CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END"

_TABLE = f"""
SELECT quote_ident(pg_get_userbyid(c.relowner)), c.relreplident,
coalesce(c.reloptions, '{{}}') || array(
  SELECT 'toast.' || o FROM pg_class t, unnest(t.reloptions) o WHERE t.oid = c.reltoastrelid),
obj_description(c.oid, 'pg_class')
FROM pg_class c WHERE c.oid = {_OLD}
"""
_COLUMNS = f"""
SELECT a.attname, col_description(a.attrelid, a.attnum), a.attstattarget, a.attoptions
FROM pg_attribute a WHERE a.attrelid = {_OLD} AND a.attnum > 0 AND NOT a.attisdropped
AND EXISTS (SELECT 1 FROM pg_attribute b WHERE b.attrelid = {_OLD} AND b.attname = a.attname
  AND NOT b.attisdropped)
"""
_RIGHTS = f"""
SELECT {_WHO}, x.privilege_type, NULL, x.is_grantable
FROM pg_class c, aclexplode(c.relacl) x WHERE c.oid = {_OLD} AND x.grantee <> c.relowner
UNION ALL
SELECT {_WHO}, x.privilege_type, a.attname, x.is_grantable
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) x
WHERE c.oid = {_OLD} AND NOT a.attisdropped AND x.grantee <> c.relowner
AND EXISTS (SELECT 1 FROM pg_attribute b WHERE b.attrelid = {_OLD} AND b.attname = a.attname
  AND NOT b.attisdropped)
"""
_PUBLICATIONS = f"""
SELECT quote_ident(p.pubname), pg_has_role(p.pubowner, 'MEMBER'),
(SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
  WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::int2[])),
pg_get_expr(r.prqual, r.prrelid)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = {_OLD}
"""
_SECURED = f"""
SELECT c.relrowsecurity, c.relforcerowsecurity FROM pg_class c WHERE c.oid = {_OLD}
"""
_POLICIES = f"""
SELECT quote_ident(p.polname), CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
  WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
(SELECT string_agg(CASE o WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o)) END, ', ')
  FROM unnest(p.polroles) o),
pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
FROM pg_policy p WHERE p.polrelid = {_OLD} ORDER BY 1
"""
LEFT = f"""
WITH c AS (SELECT * FROM pg_class WHERE oid = {_OLD})
SELECT 'index ' || i.relname FROM c JOIN pg_index x ON x.indrelid = c.oid
JOIN pg_class i ON i.oid = x.indexrelid WHERE NOT x.indisprimary
UNION ALL SELECT 'constraint ' || k.conname FROM c JOIN pg_constraint k ON k.conrelid = c.oid
WHERE k.contype NOT IN ('p', 'u', 'x')
UNION ALL SELECT 'trigger ' || t.tgname FROM c JOIN pg_trigger t ON t.tgrelid = c.oid
WHERE NOT t.tgisinternal
UNION ALL SELECT 'default of ' || a.attname FROM c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.atthasdef AND NOT a.attisdropped
UNION ALL SELECT 'NOT NULL of ' || a.attname FROM c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND NOT EXISTS (SELECT 1 FROM pg_index x
  WHERE x.indrelid = c.oid AND x.indisprimary AND a.attnum = ANY (x.indkey::int2[]))
UNION ALL SELECT 'identity of ' || a.attname FROM c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attidentity <> '' AND NOT a.attisdropped
UNION ALL SELECT 'rule ' || r.rulename FROM c JOIN pg_rewrite r ON r.ev_class = c.oid
WHERE r.ev_type <> '1'
UNION ALL SELECT 'security label of ' || s.provider FROM c JOIN pg_seclabel s
  ON s.classoid = 'pg_class'::regclass AND s.objoid = c.oid
UNION ALL SELECT 'UNLOGGED' FROM c WHERE c.relpersistence = 'u'
UNION ALL SELECT 'CLUSTER ON ' || i.relname FROM c JOIN pg_index x ON x.indrelid = c.oid
JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indisclustered
UNION ALL SELECT 'statistics ' || s.stxname FROM c JOIN pg_statistic_ext s ON s.stxrelid = c.oid
UNION ALL SELECT 'tablespace ' || t.spcname FROM c JOIN pg_tablespace t ON t.oid = c.reltablespace
UNION ALL SELECT 'partitions' FROM c WHERE c.relkind = 'p'
UNION ALL SELECT 'REPLICA IDENTITY USING INDEX' FROM c WHERE c.relreplident = 'i'
UNION ALL SELECT 'publication ' || p.pubname || ', which is another role''s' FROM c
JOIN pg_publication_rel r ON r.prrelid = c.oid JOIN pg_publication p ON p.oid = r.prpubid
WHERE NOT pg_has_role(p.pubowner, 'MEMBER')
ORDER BY 1
"""
"""What a loaded table does not take over: it has to be recreated."""


def take_over(session: Session, old: TargetName, new: TargetName) -> Iterator[str]:
    """The statements by which ``new`` gets what ``old`` has. Raises DatabaseError."""
    name, literal = target_name(session.dialect, new), session.dialect.literal
    for owner, identity, options, comment in session.rows(_TABLE, old[1:]):
        yield f"ALTER TABLE {name} OWNER TO {owner}"
        if comment is not None:
            yield f"COMMENT ON TABLE {name} IS {literal(comment)}"
        if options:
            yield f"ALTER TABLE {name} SET ({', '.join(map(_option, options))})"
        if identity in ("f", "n"):
            what = "FULL" if identity == "f" else "NOTHING"
            yield f"ALTER TABLE {name} REPLICA IDENTITY {what}"
    yield from _columns(session, old, new)
    yield from _row_security(session, old, name)
    yield from _rights(session, old, new)
    yield from _publications(session, old, new)


def _option(text: str) -> str:
    key, _, value = text.partition("=")
    return f"{key} = {quoted(value)}"


def _columns(session: Session, old: TargetName, new: TargetName) -> Iterator[str]:
    name, quote = target_name(session.dialect, new), session.dialect.quote
    for column, comment, target, options in session.rows(_COLUMNS, (*old[1:], *new[1:])):
        if comment is not None:
            text = session.dialect.literal(comment)
            yield f"COMMENT ON COLUMN {name}.{quote(column)} IS {text}"
        if target is not None and target >= 0:
            yield f"ALTER TABLE {name} ALTER COLUMN {quote(column)} SET STATISTICS {target}"
        if options:
            listed = ", ".join(map(_option, options))
            yield f"ALTER TABLE {name} ALTER COLUMN {quote(column)} SET ({listed})"


def _rights(session: Session, old: TargetName, new: TargetName) -> Iterator[str]:
    """Those of the old table and no others: default privileges may give more."""
    name, quote = target_name(session.dialect, new), session.dialect.quote
    had = session.rows(_RIGHTS, (*new[1:], *new[1:], *new[1:]))
    for who in sorted({who for who, _, column, _ in had if column is None}):
        yield f"REVOKE ALL ON {name} FROM {who}"
    wanted = session.rows(_RIGHTS, (*old[1:], *old[1:], *new[1:]))
    for who, right, column, grantable in wanted:
        of = "" if column is None else f" ({quote(column)})"
        option = " WITH GRANT OPTION" if grantable else ""
        yield f"GRANT {right}{of} ON {name} TO {who}{option}"


def _row_security(session: Session, old: TargetName, name: str) -> Iterator[str]:
    """Before anybody gets a right on the table."""
    for enabled, forced in session.rows(_SECURED, old[1:]):
        if enabled:
            yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
        if forced:
            yield f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY"
    for policy, how, command, roles, using, check in session.rows(_POLICIES, old[1:]):
        seen = "" if using is None else f" USING ({using})"
        written = "" if check is None else f" WITH CHECK ({check})"
        head = f"CREATE POLICY {policy} ON {name} AS {how} FOR {command} TO {roles}"
        yield f"{head}{seen}{written}"


def _publications(session: Session, old: TargetName, new: TargetName) -> Iterator[str]:
    name, before = target_name(session.dialect, new), target_name(session.dialect, old)
    for publication, own, columns, rows in session.rows(_PUBLICATIONS, old[1:]):
        if own:
            listed = "" if columns is None else f" ({columns})"
            where = "" if rows is None else f" WHERE ({rows})"
            yield f"ALTER PUBLICATION {publication} DROP TABLE {before}"
            yield f"ALTER PUBLICATION {publication} ADD TABLE {name}{listed}{where}"

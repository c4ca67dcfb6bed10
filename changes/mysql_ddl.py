"""Reads MySQL's DDL: which tables a statement names, and what it does to their rows.

What can't be read with certainty is refused by name, never passed over: a statement that is
misread here is a table that differs from its source from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from changes.model import Ddl, DdlStep, DropTable, RenameTable, TableName, TakeName, TruncateTable
from changes.mysql_alter import Alter, read_alter
from changes.mysql_tokens import Cursor, NotUnderstood, Token, split, tokenize, words

_QUOTED = 80
"""Characters of a statement that a refusal quotes."""

_WITH_BODY = words("PROCEDURE FUNCTION TRIGGER EVENT PACKAGE")
"""Objects whose body is SQL of its own, with semicolons: nothing in it is executed now."""

_NO_ROWS = (
    words(
        "DATABASE SCHEMA VIEW USER ROLE SERVER SEQUENCE TABLESPACE LOGFILE UNDO INSTANCE RESOURCE "
        "SPATIAL_REFERENCE LIBRARY"
    )
    | _WITH_BODY
)

_HARMLESS_VERBS = words(
    "GRANT REVOKE SET FLUSH ANALYZE OPTIMIZE REPAIR CHECK CHECKSUM COMMIT BEGIN START SAVEPOINT "
    "RELEASE ROLLBACK XA LOCK UNLOCK INSTALL UNINSTALL CHANGE RESET EXPLAIN SHOW DESCRIBE DESC "
    "KILL PURGE STOP CACHE HELP BINLOG SHUTDOWN RESTART CLONE"
)
_INDEX_KINDS = words("UNIQUE FULLTEXT SPATIAL ONLINE OFFLINE VECTOR")


def read_ddl(sql: str, header: TableName) -> tuple[Ddl, ...]:
    """Take the text of one or several statements apart, an entry for each table they name.

    ``header`` is the table that the message names: its database is that of unqualified names,
    itself stands for what names no table but must be refused. An entry whose table's name is
    empty is about the whole database.
    """
    try:
        statements = _statements(tokenize(sql))
    except NotUnderstood as error:
        return (Ddl(header, sql, unread=_not_understood(sql, error)),)
    if not statements:
        return (Ddl(header, sql, refused="a DDL message without a statement"),)
    found = [ddl for part in statements for ddl in _Reader(sql, header).read(part)]
    return tuple(found)


def _not_understood(sql: str, error: NotUnderstood) -> str:
    return f"a statement that is not understood ({error}): {' '.join(sql.split())[:_QUOTED]!r}"


def _statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """Cut at semicolons, but leave a stored program with its body in one piece."""
    parts = [part for part in split(tokens, ";") if part]
    for place, part in enumerate(parts):
        if part[0].text.upper() in ("CREATE", "ALTER") and _object(part) in _WITH_BODY:
            return [*parts[:place], [token for left in parts[place:] for token in left]]
    return parts


def _object(tokens: Sequence[Token]) -> str:
    """Find what a CREATE, ALTER or DROP is about: the first word that names a kind of object."""
    for token in tokens[1:]:
        word = token.text.upper()
        if token.kind == "word" and word in _NO_ROWS | {"TABLE", "TABLES", "INDEX"}:
            return word
    return ""


class _Reader:
    """Reads one statement."""

    def __init__(self, sql: str, header: TableName) -> None:
        self._sql = sql
        self._header = header

    def read(self, tokens: Sequence[Token]) -> list[Ddl]:
        cursor = Cursor(tokens)
        verb = cursor.next()
        self._text = self._sql[tokens[0].start : tokens[-1].end]
        try:
            return self._statement(verb.text.upper() if verb.kind == "word" else "", cursor, tokens)
        except NotUnderstood as error:
            return [Ddl(self._header, self._text, unread=_not_understood(self._text, error))]

    def _statement(self, verb: str, cursor: Cursor, tokens: Sequence[Token]) -> list[Ddl]:
        if verb == "TRUNCATE":
            cursor.accept("TABLE")
            return [self._step(cursor.table(self._header.database), TruncateTable())]
        if verb == "RENAME":
            return self._rename(cursor)
        if verb in _HARMLESS_VERBS:
            return []
        what = _object(tokens)
        if verb == "ALTER" and what == "TABLE":
            return self._alter(cursor)
        if verb == "CREATE" and what in ("TABLE", "INDEX"):
            return self._create(what, cursor)
        if verb == "DROP" and what in ("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"):
            return self._drop(cursor)
        if verb in ("CREATE", "ALTER", "DROP") and what in _NO_ROWS:
            return []
        raise NotUnderstood(f"{tokens[0].text!r} at the beginning")

    def _refused(self, table: TableName, reason: str) -> Ddl:
        return Ddl(table, self._text, refused=reason)

    def _step(self, table: TableName, step: DdlStep) -> Ddl:
        return Ddl(table, self._text, (step,))

    def _rename(self, cursor: Cursor) -> list[Ddl]:
        if cursor.accept("USER"):
            return []
        if not (cursor.accept("TABLE") or cursor.accept("TABLES")):
            raise NotUnderstood("RENAME of something else than a table")
        cursor.accept("IF", "EXISTS")
        pairs = []
        for part in split(cursor.rest(), ","):
            pair = Cursor(part)
            old = pair.table(self._header.database)
            if pair.accept_any(frozenset(("WAIT", "NOWAIT"))) == "WAIT":
                pair.next()
            if not pair.accept("TO"):
                raise NotUnderstood("RENAME without TO")
            new = pair.table(self._header.database)
            if not pair.at_end:
                raise NotUnderstood(f"{pair.next().text!r} after RENAME")
            pairs.append((old, new))
        return self._renamed(pairs)

    def _renamed(self, pairs: Sequence[tuple[TableName, TableName]]) -> list[Ddl]:
        """What the pairs come to in the end, carried out one after another as the server does."""
        came_from: dict[TableName, TableName] = {}
        for old, new in pairs:
            came_from[new] = came_from.pop(old, old)
        goes_to = {old: new for new, old in came_from.items() if new != old}
        steps: dict[TableName, list[DdlStep]] = {}
        for old, new in goes_to.items():
            steps.setdefault(old, []).append(RenameTable(new))
            steps.setdefault(new, []).append(TakeName(old))
        circle = _in_a_circle(goes_to)
        return [
            self._refused(table, "RENAME TABLE that exchanges names")
            if table in circle
            else Ddl(table, self._text, tuple(done))
            for table, done in steps.items()
        ]

    def _create(self, what: str, cursor: Cursor) -> list[Ddl]:
        replaces = cursor.accept("OR", "REPLACE")
        if what == "TABLE":
            if cursor.accept("TEMPORARY"):
                return []
            if not cursor.accept("TABLE"):
                raise NotUnderstood("CREATE")
            cursor.accept("IF", "NOT", "EXISTS")
            table = cursor.table(self._header.database)
            if replaces:
                return [self._step(table, DropTable())]
            return [Ddl(table, self._text)]
        while cursor.accept_any(_INDEX_KINDS):
            continue
        if not cursor.accept("INDEX"):
            raise NotUnderstood("CREATE")
        cursor.accept("IF", "NOT", "EXISTS")
        cursor.name()
        return [Ddl(self._on_table(cursor), self._text)]

    def _on_table(self, cursor: Cursor) -> TableName:
        while not cursor.accept("ON"):
            cursor.next()
        return cursor.table(self._header.database)

    def _drop(self, cursor: Cursor) -> list[Ddl]:
        if cursor.accept("TEMPORARY"):
            return []
        if cursor.accept("DATABASE") or cursor.accept("SCHEMA"):
            cursor.accept("IF", "EXISTS")
            database = cursor.name()
            return [self._refused(TableName(database, ""), f"DROP DATABASE {database}")]
        if cursor.accept("TABLE") or cursor.accept("TABLES"):
            cursor.accept("IF", "EXISTS")
            tables = [
                Cursor(part).table(self._header.database) for part in split(cursor.rest(), ",")
            ]
            return [self._step(table, DropTable()) for table in tables]
        cursor.accept("ONLINE")
        if not cursor.accept("INDEX"):
            raise NotUnderstood("DROP")
        cursor.accept("IF", "EXISTS")
        index = cursor.name()
        table = self._on_table(cursor)
        refused = "DROP PRIMARY KEY" if index.upper() == "PRIMARY" else None
        return [Ddl(table, self._text, refused=refused)]

    def _alter(self, cursor: Cursor) -> list[Ddl]:
        while cursor.accept_any(frozenset(("ONLINE", "OFFLINE", "IGNORE"))):
            continue
        if not cursor.accept("TABLE"):
            raise NotUnderstood("ALTER")
        cursor.accept("IF", "EXISTS")
        table = cursor.table(self._header.database)
        if cursor.accept_any(frozenset(("WAIT", "NOWAIT"))) == "WAIT":
            cursor.next()
        alter, unread = Alter(), None
        try:
            read_alter(cursor.rest(), self._sql, table, alter)
        except NotUnderstood as error:
            unread = _not_understood(self._text, error)
        return self._altered(table, alter, unread)

    def _altered(self, table: TableName, alter: Alter, unread: str | None) -> list[Ddl]:
        """What is refused goes before what is not understood: the former stops in any case."""
        named = table if alter.renamed_to is None else alter.renamed_to
        refused = "; ".join([*alter.refused, *alter.unknown]) or None
        if refused or unread:
            lenient = () if alter.refused or unread or named != table else tuple(alter.steps)
            first = Ddl(table, self._text, (), refused, None if refused else unread, lenient)
            return [first] if named == table else [first, replace(first, table=named)]
        if named == table:
            return [Ddl(table, self._text, tuple(alter.steps))]
        moved, taken = self._renamed([(table, named)])
        return [Ddl(table, self._text, (*alter.steps, *moved.steps)), taken]


def _in_a_circle(goes_to: Mapping[TableName, TableName]) -> set[TableName]:
    """The tables whose names come back to them along the way: no order of single steps does it."""
    found: set[TableName] = set()
    for start in goes_to:
        at = goes_to.get(start)
        while at is not None and at != start:
            at = goes_to.get(at)
        if at == start:
            found.add(start)
    return found

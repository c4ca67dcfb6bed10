"""Reads one statement of MySQL's after another: what it is about, and what it does there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from changes.model.model import (
    Ddl,
    DdlStep,
    DropTable,
    RenameTable,
    TableName,
    TakeName,
    TruncateTable,
)
from changes.sql.mysql.alter import Alter, read_alter, spares_rows
from changes.sql.mysql.names import StatementNames, named_in, restored
from changes.sql.mysql.rowless import WITH_BODY, is_harmless, kind_of_object, skip_set_statement
from changes.sql.mysql.tokens import Cursor, NotUnderstood, Token, on_one_line, split, tokenize

_QUOTED = 80
"""Characters of a statement that a refusal quotes."""

_TEMPORARY = (
    "a log of rows has no temporary tables: binlog_format is another one, in which later "
    "statements on a table of this name may be of the temporary one"
)


def read_statements(
    sql: str, header: TableName, names: StatementNames, *, escapes: bool = True
) -> list[Ddl]:
    """Read each statement of a text, an entry for each table that it names. ``escapes``: a
    backslash in its texts escapes."""
    try:
        statements = _statements(tokenize(sql, escapes=escapes))
    except NotUnderstood as error:
        unread = not_understood(sql, error)
        return [Ddl(table, sql, unread=unread) for table in named_in(sql, header)]
    if not statements:
        return [Ddl(header, sql, refused="a DDL message without a statement")]
    return [ddl for part in statements for ddl in _Reader(sql, header, names).read(part)]


def not_understood(sql: str, error: NotUnderstood) -> str:
    """The reason for a text that is not understood, with its beginning."""
    return f"a statement that is not understood ({error}): {on_one_line(sql)[:_QUOTED]!r}"


def _statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """Cut at semicolons, but leave a stored program with its body in one piece."""
    parts = [part for part in split(tokens, ";") if part]
    for place, part in enumerate(parts):
        if _has_body(part):
            return [*parts[:place], [token for left in parts[place:] for token in left]]
    return parts


def _has_body(tokens: Sequence[Token]) -> bool:
    cursor = Cursor(tokens)
    try:
        skip_set_statement(cursor)
        made = cursor.accept("CREATE") or cursor.accept("ALTER")
        return made and kind_of_object(cursor) in WITH_BODY
    except NotUnderstood:
        return False


class _Reader:
    """Reads one statement."""

    def __init__(self, sql: str, header: TableName, names: StatementNames) -> None:
        self._sql = sql
        self._header = header
        self._names = names

    def read(self, tokens: Sequence[Token]) -> list[Ddl]:
        self._text = self._sql[tokens[0].start : tokens[-1].end]
        try:
            return self._statement(Cursor(tokens))
        except NotUnderstood as error:
            unread = not_understood(self._text, error)
            about = named_in(self._text, self._header)
            return [Ddl(table, self._text, unread=unread) for table in about]

    def _statement(self, cursor: Cursor) -> list[Ddl]:
        skip_set_statement(cursor)
        if cursor.accept("TRUNCATE"):
            cursor.accept("TABLE")
            table = self._names.table(cursor)
            _end(cursor)
            return [self._step(table, TruncateTable())]
        if cursor.is_words("RENAME", "TABLE") or cursor.is_words("RENAME", "TABLES"):
            return self._rename(cursor)
        if cursor.accept("USE"):
            self._names.use(cursor.name())
            return []
        for verb, read in (
            ("ALTER", self._alter),
            ("CREATE", self._create),
            ("DROP", self._drop),
        ):
            if cursor.accept(verb):
                return read(cursor)
        if (back := restored(cursor, self._names, self._header)) is not None:
            reason, tables = f"{back[0]}, which brings rows back without events,", back[1]
            return [self._refused(table, reason) for table in dict.fromkeys(tables)]
        first = cursor.peek()
        if is_harmless(cursor):
            return []
        raise NotUnderstood(f"{first.text if first else ''!r} at the beginning")

    def _refused(self, table: TableName, reason: str) -> Ddl:
        return Ddl(table, self._text, refused=reason)

    def _step(self, table: TableName, step: DdlStep) -> Ddl:
        return Ddl(table, self._text, (step,))

    def _rename(self, cursor: Cursor) -> list[Ddl]:
        cursor.next()
        cursor.next()
        optional = cursor.accept("IF", "EXISTS")
        pairs = []
        for part in split(cursor.rest(), ","):
            pair = Cursor(part)
            old = self._names.table(pair)
            _wait(pair)
            if not pair.accept("TO"):
                raise NotUnderstood("RENAME without TO")
            pairs.append((old, self._names.table(pair)))
            _end(pair)
        named = [table for pair in pairs for table in pair]
        if optional and len({*named}) < len(named):  # which renames took place is unknown
            reason = "RENAME TABLE IF EXISTS that names a table twice"
            return [self._refused(table, reason) for table in dict.fromkeys(named)]
        return self._renamed(pairs)

    def _renamed(self, pairs: Sequence[tuple[TableName, TableName]]) -> list[Ddl]:
        """The net renames of the pairs, executed one after another as the server does."""
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

    def _create(self, cursor: Cursor) -> list[Ddl]:
        replaces = cursor.is_words("OR", "REPLACE")
        temporary = cursor.is_words("TEMPORARY") or cursor.is_words("OR", "REPLACE", "TEMPORARY")
        kind = kind_of_object(cursor)
        cursor.next()
        if kind == "TABLES":
            raise NotUnderstood("CREATE TABLES")
        if replaces and kind in ("DATABASE", "SCHEMA"):
            database = cursor.name()
            return [self._refused(TableName(database, ""), f"CREATE OR REPLACE {kind} {database}")]
        if temporary and kind == "TABLE":
            raise NotUnderstood(_TEMPORARY)
        if temporary or kind not in ("TABLE", "INDEX"):
            return []
        cursor.accept("IF", "NOT", "EXISTS")
        if kind == "INDEX":
            cursor.name()
            return [Ddl(self._on_table(cursor), self._text)]
        table = self._names.table(cursor)
        if _is_versioned(cursor):
            return [self._refused(table, "a table WITH SYSTEM VERSIONING")]
        return [self._step(table, DropTable())] if replaces else [Ddl(table, self._text)]

    def _on_table(self, cursor: Cursor) -> TableName:
        while not cursor.accept("ON"):
            cursor.next()
        return self._names.table(cursor)

    def _drop(self, cursor: Cursor) -> list[Ddl]:
        temporary = cursor.is_words("TEMPORARY")
        kind = kind_of_object(cursor)
        cursor.next()
        cursor.accept("IF", "EXISTS")
        if temporary:
            return []
        if kind in ("DATABASE", "SCHEMA"):
            database = cursor.name()
            return [self._refused(TableName(database, ""), f"DROP DATABASE {database}")]
        if kind in ("TABLE", "TABLES"):
            return self._drop_tables(cursor)
        if kind != "INDEX":
            return []
        index = cursor.name()
        table = self._on_table(cursor)
        refused = "DROP PRIMARY KEY" if index.upper() == "PRIMARY" else None
        return [Ddl(table, self._text, refused=refused)]

    def _drop_tables(self, cursor: Cursor) -> list[Ddl]:
        tables = []
        for part in split(cursor.rest(), ","):
            one = Cursor(part)
            tables.append(self._names.table(one))
            one.accept_any(frozenset(("RESTRICT", "CASCADE")))
            _end(one)
        return [self._step(table, DropTable()) for table in tables]

    def _alter(self, cursor: Cursor) -> list[Ddl]:
        cursor.accept_any(frozenset(("ONLINE", "OFFLINE")))
        ignore = cursor.accept("IGNORE")
        kind = kind_of_object(cursor)
        cursor.next()
        if kind != "TABLE":
            if kind in ("TABLES", "INDEX") or any(map(_is_upgrade, cursor.rest())):
                raise NotUnderstood(f"ALTER {kind}")
            return []
        cursor.accept("IF", "EXISTS")
        table = self._names.table(cursor)
        _wait(cursor)
        alter, unread = Alter(), None
        clauses = cursor.rest()
        if ignore and not spares_rows(clauses):
            alter.refused.append("ALTER IGNORE TABLE, which may delete and change rows,")
        try:
            read_alter(clauses, self._sql, self._names, alter)
        except NotUnderstood as error:
            unread = not_understood(self._text, error)
        return [
            *self._altered(table, alter, unread),
            *(self._refused(other, reason) for other, reason in alter.others),
        ]

    def _altered(self, table: TableName, alter: Alter, unread: str | None) -> list[Ddl]:
        """A refused part takes precedence over one that is not understood: it always stops."""
        named = table if alter.renamed_to is None else alter.renamed_to
        refused = "; ".join([*alter.refused, *alter.unknown]) or None
        if refused or unread:
            lenient = () if alter.refused or unread or named != table else tuple(alter.steps)
            unread = None if refused else unread
            redefined = tuple(alter.redefined) if lenient else ()
            first = Ddl(table, self._text, (), refused, unread, lenient, redefined)
            return [first] if named == table else [first, replace(first, table=named)]
        steps, redefined = tuple(alter.steps), tuple(alter.redefined)
        if named == table:
            return [Ddl(table, self._text, steps, redefined=redefined)]
        moved, taken = self._renamed([(table, named)])
        return [Ddl(table, self._text, (*steps, *moved.steps), redefined=redefined), taken]


def _wait(cursor: Cursor) -> None:
    if cursor.accept("WAIT"):
        cursor.next()
    else:
        cursor.accept("NOWAIT")


def _end(cursor: Cursor) -> None:
    """Check that nothing unknown follows a table's name: it might be a table, too."""
    _wait(cursor)
    if not cursor.at_end:
        raise NotUnderstood(f"{cursor.next().text!r} after a table's name")


def _is_upgrade(token: Token) -> bool:
    """``ALTER DATABASE … UPGRADE DATA DIRECTORY NAME`` gives the database another name."""
    return token.keyword == "UPGRADE"


def _is_versioned(cursor: Cursor) -> bool:
    """MariaDB writes such a table's history as rows of the same key, its deletes as updates."""
    while not cursor.at_end:
        if cursor.accept("WITH", "SYSTEM", "VERSIONING"):
            return True
        cursor.next()
    return False


def _in_a_circle(goes_to: Mapping[TableName, TableName]) -> set[TableName]:
    """The tables in a cycle of renames, which no order of single renames can execute."""
    found: set[TableName] = set()
    for start in goes_to:
        at = goes_to.get(start)
        while at is not None and at != start:
            at = goes_to.get(at)
        if at == start:
            found.add(start)
    return found

"""Recognises MySQL's statements that change no stored row, by a closed list.

Any other statement is parsed, or not understood: an unknown word is never harmless.
"""

from __future__ import annotations

from changes.sql.mysql.tokens import Cursor, NotUnderstood, words

WITH_BODY = words("PROCEDURE FUNCTION TRIGGER EVENT PACKAGE")
"""Objects whose body is SQL, with semicolons, that is not executed now."""

_NO_ROWS = (
    words("DATABASE SCHEMA VIEW USER ROLE SERVER SEQUENCE TABLESPACE INSTANCE LIBRARY") | WITH_BODY
)
_NO_ROWS_OF_TWO = (("LOGFILE", "GROUP"), ("RESOURCE", "GROUP"), ("UNDO", "TABLESPACE"))
_WITH_ROWS = words("TABLE TABLES INDEX")

_WHOLE_VERBS = words(
    "GRANT REVOKE FLUSH COMMIT SAVEPOINT RELEASE ROLLBACK XA INSTALL UNINSTALL RESET EXPLAIN SHOW "
    "DESCRIBE DESC KILL HELP BINLOG SHUTDOWN RESTART UNLOCK"
)
_STARTED = words("SLAVE REPLICA ALL GROUP_REPLICATION")
_HARMLESS = (
    *((word,) for word in _WHOLE_VERBS),
    ("BEGIN", "WORK"),
    ("START", "TRANSACTION"),
    *((verb, what) for verb in ("START", "STOP") for what in _STARTED),
    ("CHANGE", "MASTER"),
    ("CHANGE", "REPLICATION"),
    ("PURGE", "BINARY"),
    ("PURGE", "MASTER"),
    ("LOCK", "TABLE"),
    ("LOCK", "TABLES"),
    ("LOCK", "INSTANCE"),
    ("CACHE", "INDEX"),
    ("RENAME", "USER"),
    ("CHECKSUM", "TABLE"),
    ("CHECKSUM", "TABLES"),
    ("CHECK", "TABLE"),
    ("CHECK", "TABLES"),
    ("CHECK", "VIEW"),
)
"""How statements begin that change no stored row, whatever follows."""

_UPKEEP = words("ANALYZE OPTIMIZE REPAIR")
_NOT_LOGGED = frozenset(("LOCAL", "NO_WRITE_TO_BINLOG"))
_INDEX_KINDS = words("UNIQUE FULLTEXT SPATIAL ONLINE OFFLINE VECTOR")


def is_harmless(cursor: Cursor) -> bool:
    """Whether a statement that makes, alters and drops nothing is known to change no row."""
    if cursor.is_words("SET"):
        return True
    if any(cursor.is_words(*line) for line in _HARMLESS):
        return True
    if cursor.accept("BEGIN"):
        return cursor.at_end  # BEGIN NOT ATOMIC has a body
    if not cursor.accept_any(_UPKEEP):
        return False
    cursor.accept_any(_NOT_LOGGED)
    return any(map(cursor.is_words, ("TABLE", "TABLES", "VIEW", "VIEWS")))


def skip_set_statement(cursor: Cursor) -> None:
    """Go on behind MariaDB's ``SET STATEMENT name = value, … FOR``; raises NotUnderstood."""
    while cursor.accept("SET", "STATEMENT"):
        while not cursor.accept("FOR"):
            if cursor.at_group():
                cursor.group()
            else:
                cursor.next()


def kind_of_object(cursor: Cursor) -> str:
    """The kind of object of a CREATE, ALTER or DROP; the cursor stops before that word.

    ``TABLE``, ``TABLES``, ``INDEX``, one of ``WITH_BODY``, or another kind without rows. Raises
    NotUnderstood at an unknown word.
    """
    while True:
        if any(cursor.is_words(*pair) for pair in _NO_ROWS_OF_TWO):
            return "GROUP"
        if cursor.is_words("SPATIAL", "REFERENCE", "SYSTEM"):
            return "SYSTEM"
        token = cursor.peek()
        word = token.keyword if token is not None else ""
        if word in _NO_ROWS | _WITH_ROWS:
            return word
        if not _skip_modifier(cursor):
            raise NotUnderstood(f"{token.text if token else 'the end'!r} where a kind should be")


def _skip_modifier(cursor: Cursor) -> bool:
    if cursor.accept("OR", "REPLACE"):
        return True
    if cursor.accept("SQL", "SECURITY"):
        cursor.next()
        return True
    if cursor.accept("ALGORITHM"):
        cursor.accept_sign("=")
        cursor.next()
        return True
    if cursor.accept("DEFINER"):
        cursor.accept_sign("=")
        _skip_account(cursor)
        return True
    return bool(cursor.accept_any(_INDEX_KINDS | {"IGNORE", "TEMPORARY", "AGGREGATE"}))


def _skip_account(cursor: Cursor) -> None:
    """``'a'@'%'``, ``a@localhost``, ``CURRENT_USER()``; hosts may hold dots and dashes."""
    ends = _NO_ROWS | _WITH_ROWS | words("SQL AGGREGATE")
    while not any(cursor.is_words(word) for word in ends):
        cursor.next()

"""Reads the options of a table in MySQL's ALTER TABLE: hardly any concerns a stored row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from changes.model.model import AddColumn, ChangeColumn, DdlStep, DropColumn, RenameColumn
from changes.sql.mysql.columns import read_charset
from changes.sql.mysql.tokens import Cursor, NotUnderstood, words

_TABLE_OPTIONS = words(
    "ENGINE TYPE AUTO_INCREMENT COMMENT ROW_FORMAT KEY_BLOCK_SIZE AVG_ROW_LENGTH CHECKSUM "
    "TABLE_CHECKSUM MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD DELAY_KEY_WRITE STATS_AUTO_RECALC "
    "STATS_PERSISTENT STATS_SAMPLE_PAGES COMPRESSION ENCRYPTION CONNECTION INSERT_METHOD "
    "AUTOEXTEND_SIZE ENGINE_ATTRIBUTE SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE "
    "PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL PAGE_CHECKSUM TRANSACTIONAL ENCRYPTED "
    "ENCRYPTION_KEY_ID IETF_QUOTES CHARSET COLLATE ALGORITHM LOCK TABLESPACE"
)
_NO_ROWS = words("BLACKHOLE MERGE MRG_MYISAM FEDERATED FEDERATEDX CONNECT SPIDER")
"""Engines that store no rows themselves: a table that changes to one loses its rows."""

_BARE_OPTIONS = words("FORCE NOWAIT SECONDARY_LOAD SECONDARY_UNLOAD")


@dataclass(slots=True)
class Options:
    """Effects on stored rows: what removes them, and the character sets that their texts are
    converted to."""

    refused: list[str] = field(default_factory=list)
    charsets: list[str] = field(default_factory=list)


def read_options(cursor: Cursor) -> Options:
    """Read options, which may follow each other without commas. Raises NotUnderstood."""
    found = Options()
    while not cursor.at_end and not cursor.is_words("PARTITION", "BY"):
        if _other_option(cursor, found):
            continue
        option = cursor.peek()
        if named := cursor.accept_any(_TABLE_OPTIONS):
            cursor.accept_sign("=")
            value = cursor.next().text.upper()
            if named in ("ENGINE", "TYPE") and value in _NO_ROWS:
                found.refused.append(f"ENGINE {value}")
        elif not cursor.accept_any(_BARE_OPTIONS):
            raise NotUnderstood(f"{option.text if option else ''!r} in ALTER TABLE")
    return found


def _converted(cursor: Cursor) -> str:
    """The character set that texts are converted to; DEFAULT is the server's, which is unknown."""
    charset = read_charset(cursor)
    if charset is None:
        raise NotUnderstood("CONVERT TO")
    read_charset(cursor)  # a collation of it
    return charset


def _other_option(cursor: Cursor, found: Options) -> bool:
    """Read one clause or option that is more than ``word = value``."""
    cursor.accept("DEFAULT")
    if cursor.accept("CONVERT", "TO"):
        found.charsets.append(_converted(cursor))
        return True
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET"):
        cursor.accept_sign("=")
        cursor.next()
        return True
    for verb in ("DISCARD", "IMPORT"):
        if cursor.accept(verb, "TABLESPACE"):
            found.refused.append(f"{verb} TABLESPACE")
            return True
    if cursor.accept("UNION"):
        cursor.accept_sign("=")
        cursor.group()
        return True
    if cursor.accept("DATA", "DIRECTORY") or cursor.accept("INDEX", "DIRECTORY"):
        cursor.accept_sign("=")
        cursor.next()
        return True
    pairs = (
        ("DISABLE", "KEYS"),
        ("ENABLE", "KEYS"),
        ("WITH", "VALIDATION"),
        ("WITHOUT", "VALIDATION"),
        ("REMOVE", "PARTITIONING"),
    )
    return any(cursor.accept(*pair) for pair in pairs)


# Refuses clauses of one ALTER TABLE that depend on each other.


def check_together(steps: Sequence[DdlStep], defaults: Collection[str], *, optional: bool) -> None:
    """Raise NotUnderstood where a clause depends on another one.

    ``defaults`` are the columns, in lower case, of ALTER COLUMN ... DEFAULT. ``optional``: a clause
    depends on the existence of a column.
    """
    added = {step.column.name.lower() for step in steps if isinstance(step, AddColumn)}
    modified = {
        step.old.lower()
        for step in steps
        if isinstance(step, ChangeColumn) and step.old.lower() == step.column.name.lower()
    }
    for name in sorted(added & {*defaults, *modified}):
        raise NotUnderstood(f"{name} is added and redefined in one statement")
    if optional:
        for name, count in Counter(name for step in steps for name in _names(step)).items():
            if count > 1:
                raise NotUnderstood(f"{name} in two clauses, of which one says IF EXISTS")


def _names(step: DdlStep) -> set[str]:
    match step:
        case AddColumn(column):
            return {column.name.lower()}
        case DropColumn(name):
            return {name.lower()}
        case RenameColumn(old, new):
            return {old.lower(), new.lower()}
        case ChangeColumn(old, column):
            return {old.lower(), column.name.lower()}
        case _:
            return set()

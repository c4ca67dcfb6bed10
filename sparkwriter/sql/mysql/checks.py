"""Whether the user sees the triggers of a table: MySQL and MariaDB hide them without the right
TRIGGER."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from changes.model.model import TargetName
from databases.base.errors import Cause, DatabaseError
from sparkwriter.sql.base.session import Session, target_name

_GRANT = re.compile(
    r"GRANT (?P<rights>.*?) ON (?P<schema>\*|`(?:[^`]|``)*`)\.(?P<table>\S+|`.*?`) TO", re.ASCII
)
_NAMES_TRIGGER = re.compile(r"\b(TRIGGER|ALL PRIVILEGES)\b", re.ASCII)


def grants(rows: Callable[[str], Sequence[tuple[Any, ...]]]) -> list[str]:
    """What the user may do, by itself or by its roles. ``rows`` asks the server."""
    ((roles,),) = rows("SELECT CURRENT_ROLE()")
    using = f" FOR CURRENT_USER() USING {roles}" if "@" in str(roles) else ""
    return [line for (line,) in rows(f"SHOW GRANTS{using}")]


def sees_triggers(grants: Iterable[str], target: TargetName) -> bool:
    """Whether one of the lines of SHOW GRANTS gives the right for the target's table."""
    return any(_gives(line, target) for line in grants)


def _gives(line: str, target: TargetName) -> bool:
    found = _GRANT.match(line)
    if found is None or not _NAMES_TRIGGER.search(found["rights"]):
        return False
    whole = found["table"] == "*"
    schema = found["schema"] == "*" or _like(_name(found["schema"]), target.namespace, whole)
    return schema and (whole or _name(found["table"]) == target.table)


def _name(quoted: str) -> str:
    return quoted[1:-1].replace("``", "`")


def _like(pattern: str, name: str, may_match: bool) -> bool:
    """A schema's name is a pattern where the right is for all of its tables."""
    if not may_match:
        return pattern == name
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(one, re.escape(one[-1])) for one in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None


# Tries with an empty table whether one can take another's name. Rights are of servers, schemas,
# tables and roles, and no question tells what they come to.

MADE = "made by binlogd to try its rights: it may be dropped"
"""The comment of a table that was made for a trial: a crash leaves it, and the next trial removes
it."""


def tried(session: Session, into: TargetName, aside: TargetName) -> list[str]:
    """Why a table can't be made, altered, renamed and dropped; it is gone afterwards, or named.

    One trial of the name at a time. Raises DatabaseError where the server does not answer now.
    """
    with session.exclusive(f"binlogd tries {zlib.crc32(repr(into).encode()):08x}"):
        try:
            for name in (into, aside):
                if not _is_free(session, name):
                    return [f"{name} exists, and was made by somebody else: rename it, or drop it"]
        except DatabaseError as error:
            if error.cause is not Cause.REFUSED:
                raise
            return [f"{error}: grant it"]
        return _tried(session, into, aside)


def _is_free(session: Session, name: TargetName) -> bool:
    """Whether the name is free, once what a trial left there is gone."""
    left = session.describe(name)
    if left is None or left.comment != MADE:
        return left is None
    session.run(f"DROP TABLE {target_name(session.dialect, name)}")
    return True


def _tried(session: Session, into: TargetName, aside: TargetName) -> list[str]:
    made, moved = (target_name(session.dialect, name) for name in (into, aside))
    comment, here = session.dialect.literal(MADE), ""
    for sql, then in (
        (f"CREATE TABLE {made} (a int) COMMENT = {comment}", made),
        (f"ALTER TABLE {made} MODIFY a bigint", made),
        (f"RENAME TABLE {made} TO {moved}", moved),
        (f"DROP TABLE {moved}", ""),
    ):
        try:
            session.run(sql)
        except DatabaseError as error:
            if error.cause is not Cause.REFUSED:
                raise
            return [f"{error}: grant it{_left(session, here)}"]
        here = then
    return []


def _left(session: Session, name: str) -> str:
    """What is left of the trial, for a sentence's end."""
    if not name:
        return ""
    try:
        session.run(f"DROP TABLE {name}")
    except DatabaseError:
        return f"; {name}, which was made to try this, is left and empty: drop it"
    return ""

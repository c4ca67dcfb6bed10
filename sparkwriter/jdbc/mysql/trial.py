"""Tries with an empty table whether one can take another's name. Rights are of servers, schemas,
tables and roles, and no question tells what they come to."""

from __future__ import annotations

import zlib

from changes.model import TargetName
from sparkwriter.jdbc.dialect import target_name
from sparkwriter.jdbc.session import Cause, DbError, Session

MADE = "made by binlogd to try its rights: it may be dropped"
"""The comment of a table that was made for a trial: a crash leaves it, and the next trial removes
it."""


def tried(session: Session, into: TargetName, aside: TargetName) -> list[str]:
    """Why a table can't be made, altered, renamed and dropped; it is gone afterwards, or named.

    One trial of the name at a time. Raises DbError where the server can't be asked now.
    """
    with session.exclusive(f"binlogd tries {zlib.crc32(repr(into).encode()):08x}"):
        try:
            for name in (into, aside):
                if not _is_free(session, name):
                    return [f"{name} is there, and somebody else's: rename it, or drop it"]
        except DbError as error:
            if error.cause is not Cause.REFUSED:
                raise
            return [f"{error}: grant it"]
        return _tried(session, into, aside)


def _is_free(session: Session, name: TargetName) -> bool:
    """Whether nobody has the name, once what a trial left there is gone."""
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
        except DbError as error:
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
    except DbError:
        return f"; {name}, which was made to try this, is left and empty: drop it"
    return ""

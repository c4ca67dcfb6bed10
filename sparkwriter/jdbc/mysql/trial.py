"""Tries with an empty table whether one can take another's name. Rights are of servers, schemas,
tables and roles, and no question tells what they come to."""

from __future__ import annotations

from changes.model import TargetName
from sparkwriter.jdbc.dialect import target_name
from sparkwriter.jdbc.session import Cause, DbError, Session


def tried(session: Session, into: TargetName, aside: TargetName) -> list[str]:
    """Why a table can't be made, altered, renamed and dropped; it is gone afterwards, or named.

    Raises DbError where the server can't be asked now.
    """
    made, moved = (target_name(session.dialect, name) for name in (into, aside))
    here = ""
    for sql, then in (
        (f"CREATE TABLE {made} (a int)", made),
        (f"ALTER TABLE {made} COMMENT = 'tried'", made),
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

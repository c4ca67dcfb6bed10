"""A session that writes, by a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from databases.base.errors import DatabaseAway, DatabaseError
from databases.base.url import DatabaseUrl, Login
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.mysql.session import MySqlWriter
from sparkwriter.sql.postgres.session import PostgreSqlWriter

WRITERS = {"mysql": MySqlWriter, "postgresql": PostgreSqlWriter}
"""By the kind that a URL names."""


def connect(url: DatabaseUrl, user: str | None, password: str | None, **tls: Any) -> Session:
    """``connect_to`` the hosts of a URL. ``tls``: as of ``DatabaseUrl.logins``."""
    return connect_to(list(url.logins(user, password, **tls)))


def connect_to(logins: Sequence[Login]) -> Session:
    """Connect to the first host that can be written. Raises DatabaseError."""
    failed: list[str] = []
    for login in logins:
        try:
            session: Session = WRITERS[login.kind](login)
            if len(logins) == 1 or session.is_writable():
                return session
            session.close()
            failed.append(f"{login} is read-only")
        except DatabaseError as error:
            failed.append(f"{login}: {error}")
    raise DatabaseAway("; ".join(failed))

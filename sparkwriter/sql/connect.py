"""A session that writes, by a URL."""

from __future__ import annotations

from databases.base.errors import DatabaseAway, DatabaseError
from databases.base.url import DatabaseUrl, Tls
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.mysql.session import MySqlWriter
from sparkwriter.sql.postgres.session import PostgreSqlWriter

WRITERS = {"mysql": MySqlWriter, "postgresql": PostgreSqlWriter}
"""By the kind that a URL names."""


def connect(
    url: DatabaseUrl,
    user: str | None,
    password: str | None,
    tls: Tls | None = None,
    tls_ca: str | None = None,
) -> Session:
    """Connect to the first host that can be written. Raises DatabaseError."""
    failed: list[str] = []
    for login in url.logins(user, password, tls, tls_ca):
        try:
            session: Session = WRITERS[url.kind](login)
            if len(url.hosts) == 1 or session.is_writable():
                return session
            session.close()
            failed.append(f"{login} is read-only")
        except DatabaseError as error:
            failed.append(f"{login}: {error}")
    raise DatabaseAway("; ".join(failed))

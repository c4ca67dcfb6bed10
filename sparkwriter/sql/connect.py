"""A session by a URL."""

from __future__ import annotations

from sparkwriter.sql.base.session import Session
from sparkwriter.sql.base.url import JdbcUrl
from sparkwriter.sql.mysql.session import connect_mysql
from sparkwriter.sql.postgres.session import connect_postgres


def connect(url: JdbcUrl, user: str | None, password: str | None) -> Session:
    """Connect to the first host that can be written. Raises DatabaseError."""
    if url.is_postgres:
        return connect_postgres(url, user, password)
    return connect_mysql(url, user, password)

"""A session by a URL."""

from __future__ import annotations

from sparkwriter.jdbc.mysql.session import connect_mysql
from sparkwriter.jdbc.postgres.session import connect_postgres
from sparkwriter.jdbc.session import Session
from sparkwriter.jdbc.url import JdbcUrl


def connect(url: JdbcUrl, user: str | None, password: str | None) -> Session:
    """Connect to the first host that can be written. Raises DbError."""
    if url.is_postgres:
        return connect_postgres(url, user, password)
    return connect_mysql(url, user, password)

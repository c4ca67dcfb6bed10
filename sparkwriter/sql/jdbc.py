"""How Spark's tasks reach a database. Values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JdbcOptions:
    """A database for Spark's JDBC reader. ``password`` is shown nowhere.

    ``session`` is the statement that each connection begins with. ``fetch_rows``: so many rows are
    in a task's memory at a time.
    """

    url: str
    driver: str
    user: str
    password: str = field(repr=False)
    session: str
    fetch_rows: int = 100

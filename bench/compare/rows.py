"""What a row holds: a function of its key and its version, in MySQL's texts and in Spark's SQL.

The two are written apart: messages are made from the texts, the expectation from the SQL, so a
contestant's table is compared with values that took another way.
"""

from __future__ import annotations

from bench.compare.job import Column

CITIES = ("Amsterdam", "Berlin", "Kraków", "Lisbon", "Oslo", "Prague", "Vienna", "Zagreb")

COLUMNS = (
    Column("id", "bigint(20)", "BIGINT"),
    Column("name", "varchar(64)", "STRING"),
    Column("email", "varchar(64)", "STRING"),
    Column("city", "varchar(32)", "STRING"),
    Column("amount", "decimal(10,2)", "DECIMAL(10,2)"),
    Column("qty", "int(11)", "INT"),
    Column("created", "datetime", "TIMESTAMP_NTZ"),
)
LOADED = (
    Column("id", "bigint(20)", "BIGINT"),
    Column("name", "varchar(64)", "STRING"),
    Column("city", "varchar(32)", "STRING"),
    Column("amount", "decimal(10,2)", "DECIMAL(10,2)"),
    Column("qty", "int(11)", "INT"),
    Column("created", "datetime(6)", "TIMESTAMP_NTZ"),
)
"""Six columns, of which two texts, a decimal and a time with microseconds."""
KEY = ("id",)
CHANGING = ("amount", "qty")
"""What an update changes."""
SENT = Column("sent", "bigint(20)", "BIGINT")
"""Of the live workload: when the message was sent, in ms since 1970. It is not compared."""

JDBC_TYPES = {"id": -5, "name": 12, "email": 12, "city": 12, "amount": 3, "qty": 4,
              "created": 93, "sent": -5}  # fmt: skip
"""``sqlType`` of a Canal message: java.sql.Types."""


def texts(key: int, version: int) -> dict[str, str]:
    """A row as MySQL prints it, about 150 bytes."""
    return {
        "id": str(key),
        "name": f"customer {key}",
        "email": f"u{key}@example.com",
        "city": CITIES[key & 7],
        "amount": f"{version % 10_000_000 // 100}.{version % 100:02}",
        "qty": str(version % 1000),
        "created": f"2026-01-{key % 28 + 1:02} {key % 24:02}:{key % 60:02}:{key % 59:02}",
    }


def changing(version: int) -> dict[str, str]:
    """The part of ``texts`` that an update changes, as it was."""
    return {
        "amount": f"{version % 10_000_000 // 100}.{version % 100:02}",
        "qty": str(version % 1000),
    }


_CITY_LIST = ", ".join(f"'{city}'" for city in CITIES)
EXPRESSIONS = {
    "id": "id",
    "name": "concat('customer ', id)",
    "email": "concat('u', id, '@example.com')",
    "city": f"element_at(array({_CITY_LIST}), cast(id % 8 as int) + 1)",
    "amount": "cast((version % 10000000) / 100BD as decimal(10,2))",
    "qty": "cast(version % 1000 as int)",
    "created": "make_timestamp_ntz(2026, 1, cast(id % 28 as int) + 1, cast(id % 24 as int),"
    " cast(id % 60 as int), cast(id % 59 as int))",
}
"""By column, over ``id`` and ``version``."""


def select(source: str) -> str:
    """The rows of a relation of ids and versions, as a query."""
    columns = ", ".join(f"{expression} AS `{name}`" for name, expression in EXPRESSIONS.items())
    return f"SELECT {columns} FROM {source}"

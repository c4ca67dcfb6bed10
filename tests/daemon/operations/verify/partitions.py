"""A table of three days and its copy: what comparisons of one partition are tested with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.operations.copies import Copy
from tests.databases.base.servers import Server
from tests.needs import needed

WAYS = [
    ("mariadb", "postgresql"),
    ("mariadb", "mariadb"),
    ("postgresql", "mariadb"),
    *(
        pytest.param((source, into), marks=pytest.mark.soak)
        for source, into in (("mysql", "mysql"), ("postgresql", "mysql"), ("mysql", "postgresql"))
    ),
]
COLUMNS = {
    "mariadb": "id BIGINT PRIMARY KEY, made DATETIME(6) NULL, seen TIMESTAMP(6) NULL, day DATE,"
    " note VARCHAR(40)",
    "postgresql": "id bigint PRIMARY KEY, made timestamp(6), seen timestamptz(6), day date,"
    " note varchar(40)",
}
DAY = "made=2026-11-25"


def copied(
    servers: Mapping[str, Server], ways: tuple[str, str], folder: Path, **route: Any
) -> Copy:
    """A table of ten rows of each of three days, and its equal copy."""
    with needed():
        source, into = (servers[kind] for kind in ways)
    made = Copy(source, into, folder, route)
    rows = []
    for number in range(30):
        day = f"2026-11-{24 + number // 10}"
        at = f"{day} 0{number % 10}:00:00"
        moment = f"{at}+00" if source.kind == "postgresql" else at
        rows.append(f"({number}, '{at}', '{moment}', '{day}', 'note {number}')")
    columns = COLUMNS.get(source.kind, COLUMNS["mariadb"])
    made.run(f"CREATE TABLE {{t}} ({columns})", f"INSERT INTO {{t}} VALUES {', '.join(rows)}")
    made.loaded()
    return made


def told(table: Mapping[str, Any]) -> dict[int, str]:
    return {int(row["key"]["id"]): row["what"] for row in table["rows_that_differ"]}

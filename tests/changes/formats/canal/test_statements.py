"""Statements that Canal's own parser does not read: its rows stay under the columns of before."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.model.model import Ddl, FormatOptions
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.canal.messages import message


def read(name: str, sql: str, event: str, database: str) -> tuple[Ddl, ...]:
    """The statement, in a message whose header has this database; the session's is shop."""
    if name == "canal-json":
        value = message(event, None, isDdl=True, sql=sql, database=database, table="")
    else:
        value = wire.canal_packet(wire.canal_ddl(event, sql, "", database, "shop"))
    return FORMATS[name](FormatOptions()).ddl(value)


for_each_format = pytest.mark.parametrize("name", ["canal-json", "canal-protobuf"])


@for_each_format
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE IF EXISTS shop.t DROP COLUMN a",
        "ALTER TABLE shop.t WAIT 5 MODIFY e ENUM('y','x')",
        "ALTER TABLE shop.t ADD COLUMN IF NOT EXISTS b INT, DROP a",
        "SET STATEMENT max_statement_time = 1 FOR ALTER TABLE shop.t RENAME COLUMN a TO b",
    ],
)
def test_former_columns_are_told(name: str, sql: str) -> None:
    """Seen with Canal 1.1.7: behind the first of these the values of `b` come as `a`."""
    (ddl,) = read(name, sql, "QUERY", "")
    assert str(ddl.table) == "shop.t"
    assert "Canal's own parser did not read it" in str(ddl.unread)
    assert (ddl.steps, ddl.redefined, ddl.lenient) == ((), (), ())


@for_each_format
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE IF EXISTS shop.t ADD COLUMN a INT",
        "TRUNCATE TABLE shop.t WAIT 5",
        "RENAME TABLE IF EXISTS shop.t TO shop.u",
        "DROP TABLE shop.t WAIT 5",
    ],
)
def test_what_leaves_the_columns_is_followed(name: str, sql: str) -> None:
    """More values than names stop Canal, and a table's rows go under its name in the log."""
    found = read(name, sql, "QUERY", "")
    assert found
    assert all(ddl.steps and not ddl.unread for ddl in found)


@for_each_format
def test_what_canal_has_read_is_followed(name: str) -> None:
    """It names the table's database."""
    (ddl,) = read(name, "ALTER TABLE shop.t DROP COLUMN a", "ALTER", "shop")
    assert ddl.steps
    assert not ddl.unread

"""Loads and verifications of tables whose stream's reader renames columns: the route says how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import TableName
from changes.sql.forms import Form
from daemon.operations.load.source_tables import SourceTables
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceColumn, SourceTable
from tests.daemon.operations.copies import Copy
from tests.databases.base.servers import Server
from tests.needs import needed

RENAMES = {"userId": "user_id", "e-mail": "e_mail", "bornOn": "born_on"}
COLUMNS = {
    "mariadb": "`userId` INT, part INT, `e-mail` VARCHAR(40), `bornOn` DATE, raw VARBINARY(9),"
    " PRIMARY KEY (`userId`, part)",
    "postgresql": '"userId" int, part int, "e-mail" varchar(40), "bornOn" date, raw bytea,'
    ' PRIMARY KEY ("userId", part)',
}


@pytest.fixture(params=["mariadb", "postgresql"])
def source(request: pytest.FixtureRequest, servers: Mapping[str, Server]) -> Server:
    with needed():
        return servers[request.param]


def copied(source: Server, folder: Path, **route: Any) -> Copy:
    """A table whose key is renamed, too, and what a load makes of it."""
    copy = Copy(source, source, folder, {"reader_renames": RENAMES, **route})
    rows = ", ".join(f"({n // 3}, {n % 3}, 'm{n}', '2024-01-02', 'r{n}')" for n in range(30))
    copy.run(f"CREATE TABLE {{t}} ({COLUMNS[source.kind]})", f"INSERT INTO {{t}} VALUES {rows}")
    copy.loaded(rows=7)
    return copy


def quoted(source: Server, sql: str) -> str:
    return sql if source.kind == "postgresql" else sql.replace('"', "`")


def test_a_load_has_the_streams_names(source: Server, tmp_path: Path) -> None:
    """Each column and the key by the name that the stream has, with the values of the database."""
    stored = copied(source, tmp_path).stored()
    assert stored.column_names == ["user_id", "part", "e_mail", "born_on", "raw"]
    assert sorted(stored["e_mail"].to_pylist()) == sorted(f"m{n}" for n in range(30))
    assert stored["born_on"].null_count == stored["raw"].null_count == 0


def test_verification_and_repair_follow_the_names(source: Server, tmp_path: Path) -> None:
    """Equal after the load, and after a change that the stream brings by its own names; what the
    stream did not bring is found and repaired under them."""
    copy = copied(source, tmp_path)
    table = copy.verified()
    assert table["equal"], table
    assert (table["rows"], table["notes"]) == (30, [])
    where = 'WHERE "userId" = 2 AND part = 1'
    copy.run(quoted(source, f"UPDATE {{t}} SET \"e-mail\" = 'new' {where}"))
    copy.plant("UPDATE {t} SET e_mail = 'new' WHERE user_id = 2 AND part = 1")
    assert copy.verified()["equal"]
    copy.run(quoted(source, 'UPDATE {t} SET "e-mail" = NULL, "bornOn" = \'2001-01-01\''
                            ' WHERE "userId" = 3 AND part = 0'))  # fmt: skip
    copy.plant("DELETE FROM {t} WHERE user_id = 4 AND part = 0")
    table = copy.verified(repair=True)
    told = {each["key"]["user_id"]: each for each in table["rows_that_differ"]}
    assert [told[key]["what"] for key in ("3", "4")] == ["differs", "missing"]
    assert list(told["3"]["columns"]) == ["e_mail", "born_on"]
    assert len(table["repaired"]) == 2, table
    assert copy.verified()["equal"]


def test_a_shape_goes_by_the_streams_names(source: Server, tmp_path: Path) -> None:
    """Filter, mask and rename name columns as the stream does."""
    shape = {"filter": "e_mail <> 'm4'", "mask": {"e_mail": "keep_last(1)"},
             "rename": {"born_on": "birthday"}}  # fmt: skip
    copy = copied(source, tmp_path, **shape)
    stored = copy.stored()
    assert stored.num_rows == 29
    assert {"birthday", "user_id"} <= {*stored.column_names}
    assert {text[-1] for text in stored["e_mail"].to_pylist()} == set("0123456789")
    table = copy.verified()
    assert table["equal"], table


def test_the_wrong_name_is_refused(source: Server, tmp_path: Path) -> None:
    """The column by its name in the database, and what the target has instead."""
    copy = copied(source, tmp_path)
    copy.routed({"reader_renames": RENAMES | {"e-mail": "mail"}})
    tables = SourceTables(copy.control, "p")  # type: ignore[arg-type]
    try:
        (why,) = tables.unlike({str(copy.target): copy.table}).values()
    finally:
        tables.close()
    assert "the table's column e-mail is e_mail in the stream" in why


def test_two_columns_never_get_one_name() -> None:
    """Neither by two lines of the route, nor by one and a column that has the name already."""
    columns = tuple(SourceColumn(name, "int", True, Form.WHOLE) for name in ("id", "a-b", "a_b"))
    table = SourceTable(TableName("s", "t"), columns, ("id",), 0, 0, "")
    for names in ([("a-b", "A_b")], [("a_b", "c"), ("a-b", "C")]):
        with pytest.raises(DatabaseRefused, match="the columns a-b and a_b would both be"):
            table.renamed(names)
    assert table.renamed([("A-B", "ab"), ("other", "x")]).column("ab").sql_name == "a-b"

"""DuckDB reads what binlogd has written, in both ways, as Spark does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from changes.model.model import OP, Column, TableSchema
from sparkwriter.iceberg.local_tables import metadata_of
from sparkwriter.iceberg.queries import LakeQueries
from sparkwriter.iceberg.section import Write
from sparkwriter.kit.queries import At, NoAnswer

pytestmark = pytest.mark.integration


@pytest.fixture
def ask(lake, lake_conf: dict[str, str], target) -> Any:
    if lake.folder is None:
        pytest.skip("DuckDB reads lakes on this machine")
    queries = LakeQueries("lake", lake_conf)

    def answered(sql: str, at: At = None) -> tuple[Sequence[str], list[Sequence[Any]]]:
        text = sql.replace("TABLE", queries.spell(target))
        with queries.answer(text, [target], at) as answer:
            return answer.columns, [*answer.rows]

    return answered


@pytest.mark.parametrize("way", list(Write))
def test_rows_that_were_replaced_and_deleted_are_gone(
    writer, staging, orders, rows, ask, way: Write
) -> None:
    """By vectors and by equality: the rows are those that Spark reads, after each batch."""
    staging.write = way
    first = orders(*(("U", n, f"a{n}", n) for n in range(100)))
    second = orders(*(("U", n, "b", None) for n in range(0, 60, 2)), ("D", 7, None, None))
    third = orders(("U", 7, "back", 7), ("D", 8, None, None), ("U", 200, "new", 1))
    for through, batch in enumerate((first, second, third)):
        writer.write(staging.batch(batch, through))
        columns, found = ask("SELECT * FROM TABLE ORDER BY id")
        assert [*columns] == ["id", "note", "n"]
        assert [tuple(row) for row in found] == sorted(rows(staging.target))
    deletes = metadata_of(lake_of(ask), staging.target).read_text()
    assert ("added-dvs" if way is Write.MERGE else "added-equality-delete-files") in deletes


def lake_of(ask: Any) -> dict[str, str]:
    """The catalog that the fixture asks."""
    queries = ask.__closure__[[*ask.__code__.co_freevars].index("queries")].cell_contents
    return dict(queries._catalog)


def test_a_column_that_came_later_is_null_before(writer, staging, orders, ask) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    columns = (*staging.schema.columns, Column("more", pa.string()))
    wider = pa.table({OP: ["U"], "id": [2], "note": ["b"], "n": pa.array([2], pa.int32()),
                      "more": ["x"]})  # fmt: skip
    writer.write(staging.batch(wider, 2, schema=TableSchema(columns, ("id",))))
    names, found = ask("SELECT * FROM TABLE ORDER BY id")
    assert [*names] == ["id", "note", "n", "more"]
    assert [tuple(row) for row in found] == [(1, "a", 1, None), (2, "b", 2, "x")]


def test_a_former_state_is_read_by_its_id_and_by_its_time(writer, staging, orders, ask) -> None:
    before = datetime.now(UTC)
    state = writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    between = datetime.now(UTC)
    writer.write(staging.batch(orders(("U", 1, "b", 1)), 2))
    assert ask("SELECT note FROM TABLE")[1] == [("b",)]
    assert ask("SELECT note FROM TABLE", between)[1] == [("a",)]
    assert ask("SELECT note FROM TABLE", int(state.version))[1] == [("a",)]
    with pytest.raises(NoAnswer, match="has no snapshot 3; the last ones: "):
        ask("SELECT note FROM TABLE", 3)
    with pytest.raises(NoAnswer, match=r"nothing is known of .* it has states from "):
        ask("SELECT note FROM TABLE", before)


def test_no_rows_have_their_columns_names(writer, staging, orders, ask) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    columns, found = ask("SELECT id, note FROM TABLE WHERE id = 5")
    assert ([*columns], found) == (["id", "note"], [])


@pytest.mark.parametrize(
    "sql",
    ["DROP VIEW TABLE", "COPY (SELECT 1) TO '/nowhere/x.csv'", "SELECT 1; SELECT 2",
     "CREATE TABLE x (a int)", "INSTALL httpfs", "SET TimeZone = 'CET'", "SELEC 1"],
)  # fmt: skip
def test_nothing_but_one_select_is_run(writer, staging, orders, ask, sql: str) -> None:
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with pytest.raises(NoAnswer):
        ask(sql)


def test_a_table_that_is_not_there_is_named_with_those_that_are(ask) -> None:
    with pytest.raises(NoAnswer, match="is not there; tables: "):
        ask("SELECT 1 FROM TABLE")

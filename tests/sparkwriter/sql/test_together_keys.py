"""Tables in one transaction of which one's rows point to the other's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.messages import NotTogether, WriteBatch
from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch
from actors.runtime.in_sink import published_together
from changes.model.errors import WaitsForRows
from changes.model.model import OP, Column, TableSchema, TargetName
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.databases import Server

DEFERRABLE = " DEFERRABLE INITIALLY IMMEDIATE"


class Family:
    """Parents, and children that point to them; by name one or the other comes first."""

    def __init__(self, folder: Path, target: TargetName, names: tuple[str, str]) -> None:
        self.parents, self.children = [f"{target.table}_{name}" for name in names]
        columns = (Column("id", pa.int64()), Column("parent", pa.int64()))
        self._staging = []
        for name in (self.parents, self.children):
            (where := folder / name).mkdir()
            schema = TableSchema(columns, ("id",))
            self._staging.append(Staging(where, target._replace(table=name), schema))

    def make(self, sql: Callable[..., Any], more: str = "") -> None:
        sql(
            f"CREATE TABLE shop.{self.parents} (id bigint PRIMARY KEY, parent bigint)",
            f"CREATE TABLE shop.{self.children} (id bigint PRIMARY KEY, parent bigint,"
            f" FOREIGN KEY (parent) REFERENCES shop.{self.parents} (id){more})",
        )

    def batches(self, through: int, *changes: tuple[str, int, int | None]) -> list[StagedBatch]:
        """The last changes are the children's, as many as the parents'."""
        half = len(changes) // 2
        parts = changes[:half], changes[half:]
        return [
            each.batch(_rows(part), through)
            for each, part in zip(self._staging, parts, strict=True)
        ]

    def shown(self, sql: Callable[..., Any]) -> list[Any]:
        names = self.parents, self.children
        return [sql(f"SELECT id, parent FROM shop.{name} ORDER BY id") for name in names]


def _rows(changes: tuple[tuple[str, int, int | None], ...]) -> pa.Table:
    ops, ids, parents = zip(*changes, strict=True)
    return pa.table(
        {OP: ops, "id": pa.array(ids, pa.int64()), "parent": pa.array(parents, pa.int64())}
    )


@pytest.fixture(params=[("a", "b"), ("b", "a")], ids=["parents-first", "children-first"])
def family(tmp_path: Path, target: TargetName, request: pytest.FixtureRequest) -> Family:
    return Family(tmp_path, target, request.param)


def test_rows_that_point_to_each_other_come_and_go_together(writer, sql, family: Family) -> None:
    """In whatever order the tables' names are: where one must wait, the others go first."""
    family.make(sql)
    writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 1)))
    assert family.shown(sql) == [[(1, None)], [(5, 1)]]
    writer.write_together(family.batches(2, ("D", 1, None), ("D", 5, None)))
    assert family.shown(sql) == [[], []]


def test_keys_that_can_wait_are_checked_for_all_of_them(
    server: Server, writer, sql, family: Family
) -> None:
    """So one transaction may bring new ones and end old ones."""
    if not server.is_postgres:
        return
    family.make(sql, DEFERRABLE)
    writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 1)))
    changes = ("D", 1, None), ("U", 2, None), ("D", 5, None), ("U", 6, 2)
    writer.write_together(family.batches(2, *changes))
    assert family.shown(sql) == [[(2, None)], [(6, 2)]]


def test_a_row_that_no_order_helps_is_named(server: Server, writer, sql, family: Family) -> None:
    """Its parent is not there: readers see nothing of the others either."""
    family.make(sql)
    with pytest.raises(OneFailed) as failed:
        writer.write_together(family.batches(1, ("U", 1, None), ("U", 5, 7)))
    assert isinstance(failed.value.__cause__, WaitsForRows)
    assert failed.value.target is not None
    assert failed.value.target.table == family.children
    assert family.shown(sql) == [[], []]


def test_what_the_commit_refuses_is_tried_one_by_one(
    server: Server, writer, sql, family: Family
) -> None:
    """It is not known whose rows wait: no one is blamed for another's."""
    if not server.is_postgres:
        return
    family.make(sql, DEFERRABLE)
    writes = [
        WriteBatch(batch, {}, {}, None, None)  # type: ignore[arg-type]
        for batch in family.batches(1, ("U", 1, None), ("U", 5, 7))
    ]
    said = published_together(writer, writes, 5.0)
    assert isinstance(said, NotTogether)
    assert said.failed is None

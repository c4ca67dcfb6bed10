"""What statements make of a table's columns, without a table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    Mode,
    RenameColumn,
    TableStep,
    TruncateTable,
)
from changes.sql.spark.ddl_plan import DdlTable, LakeField, apply_ddl

TABLE = DdlTable(
    (LakeField(1, "id", "long"), LakeField(2, "a", "int"), LakeField(3, "b", "string")), ("id",)
)


def after(*steps: TableStep, table: DdlTable = TABLE, mode: Mode = Mode.UPSERT) -> DdlTable:
    return apply_ddl(table, [steps], mode, "__dropped_9")


def fields(table: DdlTable) -> list[tuple[int | None, str, str]]:
    return [(field.id, field.name, field.type) for field in table.fields]


@pytest.mark.parametrize(
    "steps",
    [
        (AddColumn(Column("c", pa.int32()), 1),),
        (RenameColumn("a", "z"),),
        (DropColumn("a"),),
        (DropColumn("a", keep=True),),
        (ChangeColumn("a", Column("z", pa.int64())),),
        (RenameColumn("A", "Z"), DropColumn("B"), AddColumn(Column("d", pa.string()))),
    ],
)
def test_again_is_nothing(steps: tuple[TableStep, ...]) -> None:
    """A difference to what is required: where it is so already there is none."""
    once = after(*steps)
    assert after(*steps, table=once) == once


def test_a_column_whose_stored_values_nobody_knows_needs_a_table_without_rows() -> None:
    """Without rows any default is right; a TRUNCATE before it in the message takes them, too."""
    add = AddColumn(Column("c", pa.int32()), needs_no_rows="why")
    with pytest.raises(TargetRefused, match=r"^why$"):
        after(add)
    assert len(after(add, table=replace(TABLE, empty=True)).fields) == 4
    emptied = apply_ddl(TABLE, [(TruncateTable(),), (add,)], Mode.UPSERT, "x")
    assert (len(emptied.fields), emptied.emptied) == (4, True)


def test_a_change_renames_and_widens_under_one_id() -> None:
    """Both are what the column is now."""
    assert fields(after(ChangeColumn("a", Column("z", pa.int64())))) == [
        (1, "id", "long"), (2, "z", "long"), (3, "b", "string")
    ]  # fmt: skip


def test_all_names_are_those_of_before() -> None:
    """A clause does not see what the one before it did."""
    changed = after(
        RenameColumn("a", "b"), RenameColumn("b", "c"), AddColumn(Column("a", pa.string()))
    )
    assert fields(changed) == [
        (1, "id", "long"), (2, "b", "int"), (3, "c", "string"), (None, "a", "string")
    ]  # fmt: skip


def test_drop_and_add_of_one_name() -> None:
    """Another column: the old values are not seen in it, and are kept where that is required."""
    add = AddColumn(Column("a", pa.string()))
    assert fields(after(DropColumn("a"), add)) == [
        (1, "id", "long"), (3, "b", "string"), (None, "a", "string")
    ]  # fmt: skip
    kept = after(DropColumn("a", keep=True), add)
    assert fields(kept) == [
        (1, "id", "long"), (2, "a__dropped_9", "int"), (3, "b", "string"), (None, "a", "string")
    ]  # fmt: skip
    assert kept.kept == frozenset()


def test_a_kept_column_makes_room_for_a_renamed_one() -> None:
    """The name belongs to the source's column."""
    kept = after(DropColumn("b", keep=True))
    assert fields(after(RenameColumn("a", "b"), table=kept)) == [
        (1, "id", "long"), (2, "b", "int"), (3, "b__dropped_9", "string")
    ]  # fmt: skip


def test_a_name_in_use_is_refused() -> None:
    """A column that the source still has is not pushed aside."""
    with pytest.raises(TargetRefused, match="renamed to b, which exists already"):
        after(RenameColumn("a", "b"))


def test_another_spelling_is_a_renaming() -> None:
    """Only the letters' size changes."""
    assert fields(after(RenameColumn("a", "A")))[1] == (2, "A", "int")


def test_a_type_that_can_not_widen_is_left_to_the_rows() -> None:
    """Many a change of MySQL's type is none in the lake's."""
    assert after(ChangeColumn("b", Column("b", pa.int32()))) == TABLE


def test_statements_follow_each_other() -> None:
    """The second one sees what the first one left."""
    done = apply_ddl(
        TABLE, [[RenameColumn("a", "z")], [RenameColumn("z", "a2")]], Mode.UPSERT, "__x"
    )
    assert fields(done)[1] == (2, "a2", "int")


@pytest.mark.parametrize("name", ["_file", "x${y}"])
def test_names_that_no_column_can_have(name: str) -> None:
    """As for a column that rows bring."""
    with pytest.raises(TargetRefused, match="column"):
        after(RenameColumn("a", name))


@pytest.mark.parametrize(
    "step", [RenameColumn("a", "z", True), ChangeColumn("a", Column("z", pa.int64()), True)]
)
def test_a_kept_column_is_not_what_a_statement_with_if_exists_renames(step: TableStep) -> None:
    """The source has none of the name any more, so there it did nothing."""
    kept = after(DropColumn("a", keep=True))
    assert after(step, table=kept) == kept
    assert [name for _, name, _ in fields(after(step))] == ["id", "z", "b"]

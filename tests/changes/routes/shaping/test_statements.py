"""Statements as a shaped target sees them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    Ddl,
    DdlStep,
    DropColumn,
    Redefined,
    RenameColumn,
    TableName,
    TruncateTable,
)
from changes.routes.shaping.shape import Shape
from changes.routes.shaping.statements import NamedByShape, shaped_statement

T = TableName("s", "t")
SHAPE = Shape(rename=(("a", "A2"),), masks=(("m", "redact"),), drop=("d",))
LISTED = Shape(columns=("id", "v"))
X = Column("x", pa.int64())


def steps(shape: Shape, *given: DdlStep) -> tuple[DdlStep, ...]:
    """What is left of the steps; lenient ones go the same way."""
    found = shaped_statement(shape, Ddl(T, "ALTER …", given, lenient=given))
    assert found.steps == found.lenient
    return found.steps


def test_what_the_shape_does_not_name_goes_on() -> None:
    given = (AddColumn(X), DropColumn("y"), RenameColumn("z", "zz"), TruncateTable())
    assert steps(SHAPE, *given) == given


def test_columns_that_are_not_shown_are_left_out() -> None:
    given = (AddColumn(X), DropColumn("y"), RenameColumn("z", "zz"), ChangeColumn("z", X))
    assert steps(LISTED, *given) == ()
    assert steps(SHAPE, AddColumn(Column("D", pa.int64()))) == ()


def test_another_type_follows_under_the_targets_name() -> None:
    given = ChangeColumn("a", Column("a", pa.int64()))
    assert steps(SHAPE, given) == (ChangeColumn("A2", Column("A2", pa.int64())),)


def test_redefined_columns_have_the_targets_names() -> None:
    given = (Redefined("a", "a", "int"), Redefined("d", "d", "int"), Redefined(None, charset="x"))
    found = shaped_statement(SHAPE, Ddl(T, "ALTER …", redefined=given)).redefined
    assert found == (Redefined("A2", "A2", "int"), Redefined(None, charset="x"))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (DropColumn("A"), "dropping A, which the route's rename names,"),
        (DropColumn("d"), "dropping d, which the route's drop_columns names,"),
        (RenameColumn("m", "mm"), "renaming m to mm, where the route's mask names m,"),
        (RenameColumn("z", "m"), "renaming z to m, where the route's mask names m,"),
        (RenameColumn("z", "a2"), "a name that the route's rename gives,"),
        (ChangeColumn("m", Column("m", pa.int64())), "another type of m, which the route's mask"),
        (ChangeColumn("m", X), "renaming m to x, where the route's mask names m,"),
        (AddColumn(Column("a2", pa.int64())), "ADD COLUMN a2, a name that the route's rename"),
        (AddColumn(Column("m", pa.int64())), "ADD COLUMN m, which the route's mask names,"),
    ],
)
def test_what_the_shape_names_stops(step: DdlStep, said: str) -> None:
    with pytest.raises(NamedByShape) as stopped:
        steps(SHAPE, step)
    assert said in str(stopped.value)

"""Partitions and order as a route asks for them: what is refused, and what stops a target."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    Ddl,
    DdlStep,
    DropColumn,
    RenameColumn,
    TableName,
)
from changes.routes.shaping.layout import differing, only_adds
from changes.routes.shaping.shape import Shape
from changes.routes.shaping.statements import NamedByShape, shaped_statement
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Source, bring, route_of

T = TableName("shop", "orders")
LAID = Shape(
    rename=(("made", "created"),),
    computed=(("big", "n > 5"),),
    partition_by=("days(created)", "big"),
    sort_by=("n desc",),
)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (DropColumn("made"), "dropping made, which the route's partition_by names,"),
        (RenameColumn("made", "x"), "where the route's partition_by names made,"),
        (
            ChangeColumn("made", Column("made", pa.date32())),
            "another type of made, which the route's partition_by names,",
        ),
        (DropColumn("n"), "dropping n, which the route's"),
        (AddColumn(Column("big", pa.bool_())), "a name that the route's computed gives,"),
    ],
)
def test_a_statement_about_a_partitions_column_stops_the_target(step: DdlStep, said: str) -> None:
    """By the source's name of the column, whatever the target's is."""
    with pytest.raises(NamedByShape) as raised:
        shaped_statement(LAID, Ddl(T, "ALTER …", (step,)))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"partition_by": ("days(a", "b")}, "partition_by: 'days(a' is no transform"),
        ({"partition_by": ("weeks(a)",)}, "partition_by: 'weeks(a)' is no transform"),
        ({"partition_by": ("days(a)", "years(A)")}, "days(a) and years(A) contradict each other"),
        ({"partition_by": ("a", "A")}, "a and A contradict each other"),
        ({"sort_by": ("a", "A desc")}, "sort_by: column a is there twice"),
        ({"sort_by": ("",)}, "sort_by: an entry is empty"),
        (
            {"partition_by": ("a",), "masks": (("a", "redact"),)},
            "partition_by: column a is masked, and only sha256 keeps two values two",
        ),
        (
            {"partition_by": ("b",), "masks": (("a", "redact"),), "rename": (("a", "b"),)},
            "partition_by: column b is masked",
        ),
    ],
)
def test_what_contradicts_itself_is_no_shape(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Shape(**keys)  # type: ignore[arg-type]


def test_another_layout_is_another_shape() -> None:
    """Its rows would be in files of two kinds; how it is written does not matter."""
    held = Shape(partition_by=("days( a )",)).fingerprint
    assert held == Shape(partition_by=("DAYS(a)",)).fingerprint
    for other in (Shape(), Shape(partition_by=("hours(a)",)), Shape(partition_by=("days(b)",))):
        assert differing(held, other.fingerprint) == ["partition_by"]
        assert not only_adds(held, other.fingerprint)
        assert not only_adds(other.fingerprint, held)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (
            Shape(partition_by=("fone",)),
            "partition_by names column fone, which the rows don't have",
        ),
        (Shape(sort_by=("fone",)), "sort_by names column fone, which the rows don't have"),
        (Shape(partition_by=("days(n)",)), "days(n) does not fit a column of type int32"),
        (
            Shape(partition_by=("a",), computed=(("a", "CAST(n AS double)"),)),
            "a column of type double has no partition a",
        ),
    ],
)
def test_a_layout_that_does_not_fit_refuses_the_target(
    shape: Shape, said: str, tmp_path: Path
) -> None:
    """By name, and nothing is staged."""
    store = SqliteStore(tmp_path / "sink.db")
    source, flow = Source(False), Flow(route_of(shape), tmp_path, lambda: TargetWriter(store))
    row = {"n": 1, "phone": "1", "note": "x"}
    bring(flow, source, [Change("I", 1, 1, row, ())], [])
    assert flow.refused is not None
    assert said in flow.refused
    store.close()

"""A target of a shaped route: statements and rows that don't fit its shape stop it, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract import messages as msg
from actors.target.batching import DataError
from changes.model.model import AddColumn, Column, Mode
from changes.routes.routing import Route
from changes.routes.shaping.shape import Shape
from tests.actors.target.processor_rig import S0, ProcessorRig, canal
from tests.actors.target.test_barrier import plan, steps


def routed(**shape: Any) -> Route:
    """The route of all tables."""
    return Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None, shape=Shape(**shape))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b", "renaming a to b, where the route's mask names a,"),
        ("ALTER TABLE t DROP COLUMN a", "dropping a, which the route's mask names, is not"),
        ("ALTER TABLE t MODIFY a bigint", "another type of a, which the route's mask names, is"),
    ],
)
def test_a_statement_that_changes_what_the_shape_names_stops(sql: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        plan(sql, routes=[routed(masks=(("a", "redact"),))])


def test_a_statement_of_columns_that_are_not_shown_does_nothing() -> None:
    route = routed(columns=("id", "a"))
    assert plan("ALTER TABLE t ADD COLUMN c int", routes=[route]).batch is None
    barrier = plan("ALTER TABLE t ADD COLUMN c int", routes=[routed(drop=("x",))])
    assert steps(barrier) == [AddColumn(Column("c", pa.int32()))]


def test_a_shape_that_does_not_fit_stops_the_pipeline() -> None:
    """Nothing of it is written."""
    rig = ProcessorRig(routes=(routed(masks=(("phone", "redact"),)),))
    rig.send("t", (0, canal("t", 1, "x")))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "lake.db.t: mask names column phone, which the rows don't have" in failed.reason
    assert not rig.rows


def test_a_shape_that_does_not_fit_is_a_refusal(tmp_path: Path) -> None:
    """Where refused targets are quarantined the others go on."""
    shaped = routed(masks=(("phone", "redact"),))
    rig = ProcessorRig(tmp_path, routes=(shaped,), quarantine=True)
    rig.send("t", (0, canal("t", 1, "x")))
    rig.settle()
    assert not rig.heard(msg.PipelineFailed)
    assert rig.listed.keys() == {"lake.db.t"}


def test_a_row_without_a_result_is_a_dead_letter() -> None:
    """The others are written."""
    number = (("n", "CAST(name AS bigint)"),)
    rig = ProcessorRig(routes=(routed(computed=number),), dead_letters=True)
    rig.send("t", (0, canal("t", 1, "1")), (1, canal("t", 2, "x")), (2, canal("t", 3, "3")))
    rig.settle()
    (letter,) = rig.heard(msg.DeadLetter)
    assert (letter.offset, letter.reason[:11]) == (1, "computed.n:")
    rig.feed(msg.DeadLettered(S0, 1, 1, letter.target))
    rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "1", (3,): "3"}

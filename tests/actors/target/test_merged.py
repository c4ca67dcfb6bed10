"""Inserts that lack columns, where several source tables feed the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.model import Mode
from changes.routes.routing import Route
from changes.routes.shaping.shape import Shape
from tests.actors.target.processor_rig import ProcessorRig, canal

T = "lake.db.all"
EVENT = "inserts_may_lack_columns"
BARE = {"type": "INSERT", "mysqlType": {"id": "int(11)"}}


def bare(table: str, key: int) -> bytes:
    """An insert that has its key alone."""
    return canal(table, key, data=[{"id": str(key)}], **BARE)


def mark(rig: ProcessorRig) -> list[str]:
    return [doubt.what for batch in rig.written for doubt in batch.doubts]


def rig_of(path: Path, mode: Mode = Mode.UPSERT, shape: Shape | None = None) -> ProcessorRig:
    return ProcessorRig(path, routes=[Route(("*",), (), T, mode, shape=shape or Shape())])


def both(rig: ProcessorRig) -> None:
    """Of two tables only the first one has a name."""
    rig.send("a", (1, canal("a", 1, "x")))
    rig.send("b", (2, bare("b", 2)))
    rig.settle()


def test_a_table_that_never_had_the_column(tmp_path: Path) -> None:
    """It may have, and leave it out always: a warning by name, once, and no mark."""
    rig = rig_of(tmp_path)
    both(rig)
    rig.send("b", (3, bare("b", 3)))
    rig.settle()
    assert rig.logged(EVENT) == [f"{T}: db.b: column name: inserts come without it"]
    assert (mark(rig), rig.logged("rows_may_differ")) == ([], [])


@pytest.mark.parametrize("mode", Mode)
def test_a_table_that_has_shown_the_column(tmp_path: Path, mode: Mode) -> None:
    """Its insert took a default: the mark names table and column."""
    rig = rig_of(tmp_path, mode)
    both(rig)
    rig.send("b", (3, canal("b", 3, "y")))
    rig.send("a", (4, bare("a", 4)), (5, canal("a", 5, "z")))
    rig.settle()
    what = f"{T}: db.a: column name: inserts come without it"
    what += ", and its default at the source is not in the stream"
    assert what in mark(rig)
    assert rig.logged("rows_may_differ") == [what]


def test_a_table_that_a_statement_gave_the_column(tmp_path: Path) -> None:
    """Its next insert lacks it, and no row has shown it."""
    rig = rig_of(tmp_path)
    both(rig)
    nothing = dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames"))
    sql = "ALTER TABLE b ADD name varchar(9) DEFAULT 'n'"
    rig.send("b", (3, canal("b", 0, type="ALTER", isDdl=True, sql=sql, **nothing)), ddl=True)
    rig.settle()
    rig.send("b", (4, bare("b", 4)))
    rig.settle()
    (what,) = rig.logged("rows_may_differ")
    assert what.startswith(f"{T}: db.b: column name: inserts come without it, and")
    assert what in mark(rig)


def test_what_is_computed_of_a_column_that_an_insert_lacks(tmp_path: Path) -> None:
    """The target does not show that column: what is made of it is named, of that table alone."""
    rig = rig_of(tmp_path, Mode.APPEND, Shape(drop=("name",), computed=(("c", "name || '!'"),)))
    rig.send("a", (1, canal("a", 1, "x")), (2, bare("a", 2)))
    rig.send("b", (3, canal("b", 3, "y")))
    rig.settle()
    what = f"{T}: db.a: column c: inserts come without it"
    assert rig.logged("rows_may_differ") == [
        f"{what}, and its default at the source is not in the stream"
    ]
    assert rig.logged(EVENT) == []


def test_after_a_restart(tmp_path: Path) -> None:
    """Nothing is known of the table: a warning."""
    rig = rig_of(tmp_path)
    both(rig)
    rig.start()
    rig.send("a", (3, bare("a", 3)))
    rig.settle()
    assert f"{T}: db.a: column name: inserts come without it" in rig.logged(EVENT)


def test_columns_that_the_route_does_not_show(tmp_path: Path) -> None:
    """They are no table's."""
    rig = rig_of(tmp_path, shape=Shape(columns=("id",)))
    both(rig)
    assert (rig.logged(EVENT), mark(rig)) == ([], [])

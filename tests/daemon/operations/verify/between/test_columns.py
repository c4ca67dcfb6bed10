"""Which columns of two targets are compared with each other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from changes.model.model import Column, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import Shape
from daemon.operations.verify.between.columns import Kept, compared, logged
from daemon.operations.verify.columns import ComparedShape, NotComparable

WORDS = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "date": pa.date32(),
         "bool": pa.bool_(), "double": pa.float64(), "dec2": pa.decimal128(10, 2),
         "dec4": pa.decimal128(12, 4)}  # fmt: skip


def kept(name: str, columns: str, types: dict[str, str] | None = None, **shape: Any) -> Kept:
    """Columns as ``id:long note:string``; the first one is the key."""
    found = [each.split(":") for each in columns.split()]
    made = tuple(Column(column, WORDS[word]) for column, word in found)
    keys = (made[0].name,) if made else ()
    target = TargetName(name, "s", "t")
    declared = tuple((types or {}).items())
    route = TargetRoute(target, Mode.UPSERT, None, declared, (), Shape(**shape))
    return Kept(str(target), route, TableSchema(made, keys))


def names(shape: ComparedShape) -> list[str]:
    return [pair.name for pair in shape.pairs]


def test_columns_are_paired_by_what_they_are_made_of() -> None:
    """By the source's column, whatever each route names it, in the first one's order."""
    first, second = compared(
        kept("lake", "number:long note:string", rename=(("id", "number"),)),
        kept("pg", "id:long NOTE:string"),
    )
    assert (names(first), names(second)) == (["number", "note"], ["id", "NOTE"])
    assert [pair.name for pair in second.keys] == ["id"]
    assert (first.notes, first.whole) == ((), True)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("int", "long", True),
        ("bool", "int", True),
        ("int", "string", True),
        ("string", "int", True),
        ("date", "string", True),
        ("dec2", "dec2", True),
        ("dec2", "dec4", False),
        ("double", "string", False),
        ("double", "long", False),
    ],
)
def test_other_types_are_compared_where_equal_values_have_equal_texts(
    one: str, other: str, alike: bool
) -> None:
    """And named where they have not. Both sides mark the same texts as free."""
    first, second = compared(kept("lake", f"id:long v:{one}"), kept("pg", f"id:long v:{other}"))
    assert ("v" in names(first)) == alike
    assert bool(first.notes) != alike
    assert [pair.free for pair in first.pairs] == [pair.free for pair in second.pairs]


def test_what_the_routes_make_otherwise_is_named() -> None:
    """Computed, masked, declared and left out; what both make alike is compared."""
    salt = "a salt of some length"
    same = {"computed": (("twice", "price * 2"),), "masks": (("mail", "sha256"),), "salt": salt}
    columns = "id:long mail:string twice:dec2 note:string"
    first, _ = compared(kept("lake", columns, **same), kept("pg", columns, **same))
    assert names(first) == ["id", "mail", "twice", "note"]
    first, second = compared(
        kept("lake", columns + " more:int", **same),
        kept("pg", columns + " own:int", **(same | {"salt": "another salt of this length",
             "computed": (("twice", "price * 3"),)})),
    )  # fmt: skip
    assert names(first) == ["id", "note"]
    assert sorted(first.notes) == [
        "not compared: column mail: the routes make another value of it",
        "not compared: column more, which pg.s.t has not",
        "not compared: column own, which lake.s.t has not",
        "not compared: column twice, which lake.s.t has not",
        "not compared: column twice, which pg.s.t has not",
    ]
    assert first.notes == second.notes


def test_types_that_a_route_declares_are_made_of_other_texts() -> None:
    first, _ = compared(
        kept("lake", "id:long v:dec2", types={"v": "decimal(10,2)"}), kept("pg", "id:long v:string")
    )
    assert first.notes == ("not compared: column v: the routes make another value of it",)


def test_what_tells_of_changes_and_deleted_rows() -> None:
    """Metadata is named; deleted rows of a soft target do not count."""
    soft = kept("lake", "id:long _DELETED:bool _op:string", delete="soft", metadata=("_op",))
    first, second = compared(soft, kept("pg", "id:long"))
    assert (first.deleted, second.deleted) == ("_DELETED", None)
    (note,) = first.notes
    assert note.endswith("of lake.s.t, which tells of changes")
    assert names(first) == ["id"]


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (kept("lake", "id:long", filter="id > 5"), kept("pg", "id:long"), "other filters"),
        (kept("lake", "id:long"), kept("pg", "code:string id:long"), "other keys: id, and code"),
        (kept("lake", "id:double"), kept("pg", "id:double"), "floating-point"),
        (kept("lake", "id:long"), kept("pg", ""), "pg.s.t has no key"),
        (kept("lake", "id:dec2"), kept("pg", "id:dec4"), "the key's column id is stored as"),
    ],
)
def test_what_can_t_be_compared_is_refused_by_name(one: Kept, other: Kept, why: str) -> None:
    with pytest.raises(NotComparable, match=why):
        compared(one, other)


def test_the_log_is_asked_by_the_source_s_names() -> None:
    """With the columns that expressions need: a row that lacks one is not whole."""
    shape = {"rename": (("id", "number"),), "computed": (("twice", "price * 2"),)}
    of = logged(TableName("s", "t"), kept("lake", "number:long note:string twice:dec2", **shape))
    assert of.source.keys == ("id",)
    assert [one.column.name for one in of.columns] == ["id", "note", "price"]

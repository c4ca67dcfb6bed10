"""The shape of a route: what contradicts itself is refused by name; what a target keeps of it."""

from __future__ import annotations

from typing import Any

import pytest

from changes.routes.shaping.layout import differing, only_adds
from changes.routes.shaping.shape import NO_SHAPE, Shape

SALT = "0123456789abcdef"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"columns": ("a",), "drop": ("b",)}, "set one of them"),
        ({"columns": ()}, "columns names no column"),
        ({"columns": ("a", "A")}, "columns: column a is there twice"),
        ({"rename": (("a", "x"), ("b", "X"))}, "rename: column x is there twice"),
        ({"rename": (("a", ""),)}, "rename: a column's name is empty"),
        ({"rename": (("a", "_Deleted"),)}, "rename: _Deleted is a name of binlogd's own columns"),
        ({"rename": (("a", "__binlogd_op"),)}, "a name of binlogd's own columns"),
        ({"rename": (("a", "b"),), "drop": ("a",)}, "rename: column a is not shown"),
        ({"masks": (("a", "redact"),), "columns": ("b",)}, "mask: column a is not shown"),
        ({"masks": (("a", "md5"),)}, "mask: column a: unknown mask 'md5'"),
        ({"masks": (("a", "sha256"),)}, "sha256 needs mask_salt"),
        ({"masks": (("a", "sha256"),), "salt": "short"}, "sha256 needs mask_salt"),
        ({"salt": SALT}, "mask_salt is set, and no mask is sha256"),
    ],
)
def test_a_contradiction_is_named(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Shape(**said)


def test_a_route_that_asks_for_nothing_has_no_fingerprint() -> None:
    assert not NO_SHAPE
    assert not Shape()
    assert NO_SHAPE.fingerprint == ""


def test_a_fingerprint_is_of_what_is_meant() -> None:
    """Neither the order nor the case of columns, and of the salt no character."""
    one = Shape(masks=(("a", "keep_last( 4 )"), ("B", "sha256")), drop=("x", "y"), salt=SALT)
    two = Shape(masks=(("b", "sha256"), ("A", "keep_last(4)")), drop=("Y", "X"), salt=SALT)
    assert one.fingerprint == two.fingerprint
    assert SALT not in one.fingerprint
    other = Shape(masks=one.masks, drop=one.drop, salt=SALT + "!")
    assert differing(one.fingerprint, other.fingerprint) == ["mask_salt"]


@pytest.mark.parametrize(
    ("before", "after", "adds"),
    [
        (Shape(columns=("a",)), Shape(columns=("a", "b")), True),
        (Shape(columns=("a",)), NO_SHAPE, True),
        (Shape(drop=("a", "b")), Shape(drop=("a",)), True),
        (Shape(drop=("a",)), NO_SHAPE, True),
        (Shape(columns=("a", "b")), Shape(columns=("a",)), False),
        (NO_SHAPE, Shape(columns=("a",)), False),
        (NO_SHAPE, Shape(drop=("a",)), False),
        (Shape(columns=("a",)), Shape(drop=("a",)), False),
        (Shape(rename=(("a", "b"),)), NO_SHAPE, False),
        (Shape(columns=("a",)), Shape(columns=("a", "b"), rename=(("a", "c"),)), False),
        (Shape(masks=(("a", "redact"),)), Shape(masks=(("a", "keep_last(1)"),)), False),
    ],
)
def test_only_columns_may_be_added(before: Shape, after: Shape, adds: bool) -> None:
    assert only_adds(before.fingerprint, after.fingerprint) is adds

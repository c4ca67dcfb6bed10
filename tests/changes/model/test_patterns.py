"""Patterns of tables: globs, and regular expressions between slashes."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import Mode, TableName, TargetName
from changes.model.names import glob_of, takes
from changes.routes.routing import Route, RouteConflict, Router
from changes.routes.shaping.shape import Shape
from daemon.config.owners import shared_targets


@pytest.mark.parametrize(
    ("pattern", "name", "taken"),
    [
        (r"/shop\.order_(\d+)/", "shop.order_12", True),
        (r"/shop\.order_(\d+)/", "shop.order_12x", False),
        (r"/shop\.order_(\d+)/", "my_shop.order_1", False),
        (r"/shop\.order_(\d+)/", "shopXorder_1", False),
        (r"/shop\..*/", "shop.Order", True),
        ("shop.*", "shop.order", True),
        ("/", "/", True),
    ],
)
def test_an_expression_takes_whole_names(pattern: str, name: str, taken: bool) -> None:
    assert takes(pattern, name) is taken


@pytest.mark.parametrize(
    ("pattern", "glob"),
    [
        ("shop.order_*", "shop.order_*"),
        (r"/shop\.order_(\d+)/", "shop.order_*"),
        (r"/shop\.order/", "shop.order"),
        (r"/shop\.orders?/", "shop.order*"),
        (r"/shop\.a{2}/", "shop.*"),
        (r"/shop\.a|b/", "*"),
        (r"/shop\.(a|b)/", "shop.*"),
        (r"/(?i)shop\.a/", "*"),
        (r"/shop\.a\*/", "shop.a[*]"),
    ],
)
def test_an_expression_as_stars(pattern: str, glob: str) -> None:
    assert glob_of(pattern) == glob


@given(
    st.lists(
        st.sampled_from(
            ["shop", r"\.", "a", "b?", "(c|d)", "[ab]", r"\d+", ".*", "|", r"\*", "e{2}"]
        ),
        min_size=1,
        max_size=6,
    ),
    st.text("shop.abcde1*", max_size=8),
)
def test_the_stars_take_all_that_the_expression_takes(parts: list[str], name: str) -> None:
    """Whoever asks whether two routes could meet must not miss a name."""
    pattern = f"/{''.join(parts)}/"
    if takes(pattern, name):
        assert fnmatchcase(name, glob_of(pattern))


def test_tables_of_an_expression_share_a_target() -> None:
    """It merges them: none of them owns it."""
    route = Route((r"/shop\.order_(\d+)/",), (), "lake.shop.orders", Mode.UPSERT)
    router = Router([route])
    one, target = TableName("shop", "order_1"), TargetName("lake", "shop", "orders")
    assert [found.name for found in router.targets(one)] == [target]
    assert router.targets(TableName("shop", "order_x")) == ()
    assert router.owner(one, target) is None
    assert router.targets(TableName("shop", "")) != ()


def test_two_pipelines_whose_expressions_meet_are_refused() -> None:
    one = Route((r"/shop\.order_(\d+)/",), (), "lake.{database}.{table}", Mode.UPSERT)
    two = Route(("shop.order_7",), (), "lake.{database}.{table}", Mode.UPSERT)
    three = Route((r"/crm\..*/",), (), "lake.{database}.{table}", Mode.UPSERT)
    assert len(list(shared_targets({"a": [one], "b": [two], "c": [three]}))) == 1


def test_a_pattern_that_is_no_expression_is_named() -> None:
    with pytest.raises(ValueError, match=r"pattern '/\(/' is no regular expression"):
        Route(("/(/",), (), "lake.shop.orders", Mode.UPSERT)


def test_two_routes_that_make_one_table_in_different_shapes_are_refused() -> None:
    """Whichever came first would decide what the table shows."""
    one = Route(("a.t",), (), "lake.s.t", Mode.UPSERT, shape=Shape(drop=("x",)))
    two = Route(("b.t",), (), "lake.s.t", Mode.UPSERT)
    router = Router([one, two])
    assert router.targets(TableName("a", "t"))
    with pytest.raises(RouteConflict, match="in another shape"):
        router.targets(TableName("b", "t"))

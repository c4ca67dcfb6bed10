"""Names of targets in a statement: found where they are names, and nowhere else."""

from __future__ import annotations

import pytest

from changes.model.model import TargetName
from daemon.cli.query.names import sinks_in, spelt


def spell(target: TargetName) -> str:
    return f"<{target.namespace}|{target.table}>"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select * from lake.shop.orders", "select * from <shop|orders>"),
        ("select lake.shop.orders.id from lake.shop.orders",
         "select <shop|orders>.id from <shop|orders>"),
        ("select 1 from lake . shop . orders o", "select 1 from <shop|orders> o"),
        ('select 1 from lake."a b".`c``d`', "select 1 from <a b|c`d>"),
        ("select 1 from lake.shop.año", "select 1 from <shop|año>"),
        ("select 'lake.shop.orders', o.id from lake.shop.x o",
         "select 'lake.shop.orders', o.id from <shop|x> o"),
        ("select 'it''s lake.a.b' from lake.a.b", "select 'it''s lake.a.b' from <a|b>"),
        ("select 1 -- lake.a.b\nfrom lake.a.b", "select 1 -- lake.a.b\nfrom <a|b>"),
        ("select 1 /* lake.a.b */ from lake.a.b", "select 1 /* lake.a.b */ from <a|b>"),
        ("select $x$lake.a.b$x$ from lake.a.b", "select $x$lake.a.b$x$ from <a|b>"),
        ("select lake.shop from other.shop.orders", "select lake.shop from other.shop.orders"),
        ("select x.lake.a.b, 1.5 from t", "select x.lake.a.b, 1.5 from t"),
    ],
)  # fmt: skip
def test_a_target_is_spelt_as_its_sink_does(sql: str, found: str) -> None:
    assert spelt(sql, "lake", spell, False)[0] == found


def test_a_backslash_in_a_text_of_mysql_takes_a_quote_along() -> None:
    sql = r"select 'it\'s lake.a.b' from lake.a.b"
    assert spelt(sql, "lake", spell, True)[0] == r"select 'it\'s lake.a.b' from <a|b>"


def test_each_target_is_told_once() -> None:
    sql = "select 1 from lake.a.b join lake.a.c on lake.a.b.id = lake.a.c.id"
    targets = spelt(sql, "lake", spell, False)[1]
    assert targets == [TargetName("lake", "a", "b"), TargetName("lake", "a", "c")]


def test_the_sinks_of_a_statement() -> None:
    sinks = ["lake", "copy"]
    assert sinks_in("select 1 from copy.a.b", sinks) == ["copy"]
    assert sinks_in("select 'copy.a.b' from lake.a.b", sinks) == ["lake"]
    assert sinks_in("select 1 from copy.a.b, lake.a.b", sinks) == sinks
    assert sinks_in("select copy from t", sinks) == []

"""Which targets a table feeds."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import Mode, TableName, TargetName
from changes.routes.routing import Route, RouteConflict, Router, TargetRoute, shard_of

LAKE = "lake.{database}.{table}"


def route(
    *include: str,
    exclude: tuple[str, ...] = (),
    template: str = LAKE,
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = None,
) -> Route:
    return Route(include, exclude, template, mode, keys)


@pytest.mark.parametrize(
    ("include", "exclude", "table", "taken"),
    [
        ("shop.*", (), "shop.orders", True),
        ("shop.*", (), "shop2.orders", False),
        ("shop.order_*", (), "shop.order_1", True),
        ("shop.order_*", (), "shop.orders", False),
        ("shop.order_?", (), "shop.order_12", False),
        ("shop.order_[0-9]", (), "shop.order_7", True),
        ("shop*.orders", (), "shop_2.orders", True),
        ("*", (), "any.thing", True),
        ("shop.Orders", (), "shop.orders", False),
        ("shop.*", ("shop.tmp_*",), "shop.tmp_1", False),
        ("shop.*", ("*.tmp_*", "x.y"), "shop.orders", True),
    ],
)
def test_patterns(include: str, exclude: tuple[str, ...], table: str, taken: bool) -> None:
    """Patterns match database.table, with case; an exclusion wins."""
    name = TableName(*table.split("."))
    assert bool(Router([route(include, exclude=exclude)]).targets(name)) is taken


def test_target_names() -> None:
    """Placeholders are filled with the source's names, whatever these hold."""
    found = Router([route("*")]).targets(TableName("a.b", "{table}.c"))
    assert found == (TargetRoute(TargetName("lake", "a.b", "{table}.c"), Mode.UPSERT, None),)
    merged = route("*", template="lake.all.t_{table}", keys=("id", "shop"))
    assert merged.target(TableName("x", "o")) == TargetName("lake", "all", "t_o")


def test_one_table_to_several_targets() -> None:
    """A table may feed an upsert target and a changelog, each by a route of its own."""
    router = Router(
        [route("shop.*"), route("shop.*", template="lake.log.{table}", mode=Mode.APPEND)]
    )
    found = router.targets(TableName("shop", "orders"))
    assert [str(target.name) for target in found] == ["lake.shop.orders", "lake.log.orders"]
    assert [target.mode for target in found] == [Mode.UPSERT, Mode.APPEND]
    assert router.targets(TableName("shop", "orders")) is found


def test_two_routes_to_one_target() -> None:
    """The same changes twice in one target would be no exact copy."""
    router = Router([route("shop.*"), route("*.orders", mode=Mode.APPEND)])
    router.targets(TableName("shop", "items"))
    with pytest.raises(RouteConflict, match=r"two routes send shop\.orders to lake\.shop\.orders"):
        router.targets(TableName("shop", "orders"))


def test_many_tables_to_one_target() -> None:
    """Shards merge into one target, but only in one mode and by one key."""
    router = Router(
        [
            route("s1.o", "s2.o", template="lake.all.o", keys=("id",)),
            route("s3.o", template="lake.all.o", keys=("no",)),
        ]
    )
    assert router.targets(TableName("s1", "o")) == router.targets(TableName("s2", "o"))
    with pytest.raises(RouteConflict, match=r"s3\.o goes to lake\.all\.o"):
        router.targets(TableName("s3", "o"))


@pytest.mark.parametrize(
    ("include", "exclude", "database", "concerned"),
    [
        ("shop.*", (), "shop", True),
        ("shop.order_*", (), "shop", True),
        ("shop.order_*", (), "shop2", False),
        ("sh*", (), "shop", True),
        ("sh*", (), "s", False),
        ("*", (), "x", True),
        ("*.orders", (), "x", True),
        ("*", ("x.*",), "x", False),
        ("*", ("x.tmp_*",), "x", True),
        ("shop.*", (), "", True),
    ],
)
def test_whole_databases(
    include: str, exclude: tuple[str, ...], database: str, concerned: bool
) -> None:
    """DROP DATABASE concerns each route that could take one of the database's tables."""
    router = Router([route(include, exclude=exclude)])
    assert bool(router.targets(TableName(database, ""))) is concerned


@pytest.mark.parametrize(
    ("include", "exclude", "concerned"),
    [
        ("*", (), True),
        ("shop.*", (), True),
        ("shop.orders", (), True),
        ("shop.order_*", (), False),
        ("*orders", (), True),
        ("s*s", (), True),
        ("shop.users", (), False),
        ("shop.*", ("*.orders",), False),
        ("shop.orders", ("shop.*",), False),
        ("*", ("shop.orders",), True),
    ],
)
def test_a_table_of_an_unknown_database(
    include: str, exclude: tuple[str, ...], concerned: bool
) -> None:
    """It concerns each route that could take a table of its name."""
    router = Router([route(include, exclude=exclude)])
    assert bool(router.targets(TableName("", "orders"))) is concerned


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("lake.orders", "sink.namespace.table"),
        ("a.b.c.d", "sink.namespace.table"),
        ("lake..{table}", "sink.namespace.table"),
        ("lake.{database}.{tabel}", "allowed are"),
        ("lake.{}.{table}", "allowed are"),
        ("lake.{database.{table}", "brace"),
        ("lake.{database}}.{table}", "brace"),
        ("{database}.x.{table}", "sink must be named"),
    ],
)
def test_bad_templates(template: str, said: str) -> None:
    """A template that names no target is refused with what is allowed."""
    with pytest.raises(ValueError, match=said):
        route("*", template=template)


def test_bad_patterns() -> None:
    """Patterns that can match nothing are mistakes."""
    for pattern in ("orders", ""):
        with pytest.raises(ValueError, match="matches no table"):
            route("shop.*", exclude=(pattern,))
    with pytest.raises(ValueError, match="includes no table"):
        route()


def test_shards_are_stable() -> None:
    """A target has the same shard in every process, and always one."""
    script = (
        "from changes.routes.routing import shard_of\n"
        "print([shard_of(f'lake.shop.t{n}', 7) for n in range(50)])"
    )
    here = str([shard_of(f"lake.shop.t{n}", 7) for n in range(50)])
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here
    assert {shard_of(f"lake.shop.t{n}", 7) for n in range(50)} == set(range(7))


def test_a_target_may_stand_in_for_another() -> None:
    """While a table is being rebuilt its changes go elsewhere, whoever asks by which name."""
    target, new = TargetName("lake", "s", "t"), TargetName("lake", "s", "t__rebuild_1")
    other, t, u = TargetName("lake", "s", "u"), TableName("s", "t"), TableName("s", "u")
    router = Router([route("s.*")], {target: new})
    assert [found.name for found in router.targets(t)] == [new]
    assert (router.twin(t, new, u), router.twin(u, other, t)) == (other, new)
    assert (router.stands_in_for(new), router.stands_in_for(target)) == (target, None)
    assert not router.merges(t, new)


@pytest.mark.parametrize(
    "name",
    [
        TargetName("lake", "shop", "orders"),
        TargetName("lake", "a.b", "c.d"),
        TargetName("l", "é", "x"),
        TargetName("lake", "shop", "a`b"),
        TargetName("lake", "`", "``"),
        TargetName("lake", "`a`", "x`.`y"),
        TargetName("lake", "`a", "b`"),
        TargetName("lake", "s", "`a.b`"),
    ],
)
def test_a_targets_name_is_read_back(name: TargetName) -> None:
    """As lanes and the offset file have it, parts with a dot or a backtick quoted."""
    assert TargetName.parse(str(name)) == name


_PARTS = st.text("ab.`", min_size=1, max_size=6)


@given(_PARTS, _PARTS, _PARTS, _PARTS)
def test_no_two_targets_have_one_name(a: str, b: str, c: str, d: str) -> None:
    """Whatever dots and backticks are in it: a name names one target."""
    one, other = TargetName("lake", a, b), TargetName("lake", c, d)
    assert TargetName.parse(str(one)) == one
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lake.shop",
        "lake.shop.orders.x",
        "lake..orders",
        "lake.`a`.b",
        "lake.a.b`c",
        "l.a.`b`c`",
    ],
)
def test_what_is_no_targets_name_is_refused(text: str) -> None:
    """Too few parts, too many, an empty one, a quote that is not needed."""
    with pytest.raises(ValueError, match="not a target's name"):
        TargetName.parse(text)


TABLE = TableName("shop", "eu_orders")
ONE = TargetName("lake", "x", "shop_eu_orders")
BOTH = "lake.x.{database}_{table}"


@pytest.mark.parametrize(
    ("routes", "shared"),
    [
        # A route that spells the target, but takes no table that leads there.
        ((route("shop.*", template=BOTH), route("crm.*", template=BOTH)), False),
        ((route("shop.*", template=BOTH), route("crm.*", template="lake.x.{table}")), True),
        ((route("shop.*", template=BOTH), route("crm.?", template="lake.x.{table}")), False),
        ((route("shop.*", template=BOTH), route("crm.*", template="lake.x.crm_{table}")), False),
        (
            (route("shop.*", template=BOTH), route("crm.*", template="lake.{database}.{table}")),
            False,
        ),
        ((route("shop.*", template=BOTH), route("x.*", template="lake.{database}.{table}")), False),
        (
            (
                route("shop.*", template=BOTH),
                route("*.shop_*", exclude=("x.*", "*.shop_eu*"), template="lake.x.{table}"),
            ),
            False,
        ),
        # Both names are in the template: a table each is what is meant, and nothing else.
        ((route("*", template=BOTH),), False),
        ((route("shop.eu_orders", "shop_eu.orders", template=BOTH),), False),
        ((route("shop.*", template=BOTH), route("shop_eu.*", template=BOTH)), False),
        # Others are named outright.
        ((route("shop.*", template=BOTH), route("a.b", template=str(ONE))), True),
        ((route("shop.eu_orders", template=str(ONE)),), False),
        ((route("shop.eu_orders", "a.b", template=str(ONE)),), True),
        ((route("shop.eu_*", template=str(ONE)),), True),
        (
            (
                route("shop.eu_*", exclude=("shop.*",), template=str(ONE)),
                route("shop.*", template=BOTH),
            ),
            False,
        ),
        ((route("shop.*", template="lake.x.shop_{table}"),), False),
        ((route("shop*.eu_orders", template="lake.x.shop_{table}"),), True),
        ((route("*", template="lake.x.shop_{table}"),), True),
        ((route("shop.*", "crm.*", template="lake.x.shop_{table}"),), True),
        ((route("shop.*", "crm.*", exclude=("crm.*",), template="lake.x.shop_{table}"),), False),
        ((route("shop.*", "crm.a*", template="lake.x.shop_{table}"),), False),
    ],
)
def test_whether_tables_share_a_target(routes: tuple[Route, ...], shared: bool) -> None:
    """Only where some table takes a route that leads there: what a template could spell, if there
    were such a table, made each TRUNCATE one of several tables."""
    assert Router(routes).merges(TABLE, ONE) is shared


def test_whether_any_table_leads_to_a_target() -> None:
    """Not one that is excluded or that no template spells; a stand-in goes by its own name."""
    target, new = TargetName("lake", "shop", "t"), TargetName("lake", "shop", "t__rebuild_1")
    assert Router([route("shop.*")]).reaches(target)
    assert not Router([route("shop.*", exclude=("shop.t",))]).reaches(target)
    assert not Router([route("crm.*")]).reaches(target)
    assert Router([route("crm.*", template="lake.shop.t")]).reaches(target)
    router = Router([route("shop.t")], {target: new})
    assert router.reaches(target)
    assert router.reaches(new)


def test_a_table_of_a_route_that_takes_both_shares() -> None:
    """A route that leads this table elsewhere may lead another one to its target."""
    t, name = TableName("shop", "a"), TargetName("lake", "x", "t")
    router = Router(
        [route("shop.a", template="lake.x.t"), route("shop.*", template="lake.x.{table}")]
    )
    assert router.merges(t, name)
    assert router.merges(TableName("shop", "t"), name)
    assert not router.merges(t, TargetName("lake", "x", "a"))


HOSTILE = ["../../evil", "..", ".", "a/b", "/etc", "x\ny", "x\x00", "x\x7f", "x\x85", "\ud800", ""]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_no_lake_can_have_leads_nowhere(name: str) -> None:
    """As a table and as a database, by that route alone; other tables are not concerned."""
    router = Router([route("*", exclude=("*.log",)), route("*.*", template="lake.all.t")])
    for table in (TableName("shop", name), TableName(name, "orders")):
        if all(table):
            (left,) = router.targets(table)
            assert left.name == TargetName("lake", "all", "t")
        why = router.left_out(table)
        assert why is not None
        assert "no " in why
        assert why.isprintable()
    good = TableName("shop", "orders")
    assert (len(router.targets(good)), router.left_out(good)) == (2, None)


@pytest.mark.parametrize(
    "name", ["...", "..a", "a.b", "a b", "ä", "\U0001f600", "a\\b", "-", "%2e%2e", "a:b"]
)
def test_a_name_that_is_only_odd_leads_to_its_target(name: str) -> None:
    """They stay in their folder."""
    for table in (TableName("shop", name), TableName(name, "orders")):
        assert Router([route("*")]).left_out(table) is None


def test_a_prefix_makes_a_name_harmless() -> None:
    """What counts is the name in the lake."""
    router = Router([route("*", template="lake.x.t_{table}")])
    assert router.left_out(TableName("shop", "..")) is None
    assert router.left_out(TableName("..", "t")) is None
    assert router.left_out(TableName("shop", "../x")) is not None


def test_a_table_is_not_renamed_to_a_name_that_leads_nowhere() -> None:
    """Then no route takes it along."""
    t, target = TableName("s", "t"), TargetName("lake", "s", "t")
    router = Router([route("s.*")])
    assert router.twin(t, target, TableName("s", "../evil")) is None


@pytest.mark.parametrize("template", ["lake.a/b.{table}", "lake.x./{table}", "lake.x.t\n"])
def test_a_template_that_leaves_its_folder(template: str) -> None:
    """It is the configuration that is wrong, then."""
    with pytest.raises(ValueError, match=r"another folder|control character"):
        route("*", template=template)


def test_targets_that_are_known_before_a_table_arrives() -> None:
    """Those of a fixed name, and of tables that a pattern names in full."""
    known = route("shop.orders", "shop.tmp_*", "*", "shop.gone", exclude=("shop.gone",))
    assert list(known.known_targets()) == [TargetName("lake", "shop", "orders")]
    fixed = route("shop.*", template="lake.all.orders")
    assert list(fixed.known_targets()) == [TargetName("lake", "all", "orders")]

"""Loads and verifications of routes that shape rows: random rows, random routes, a real database.

The oracle is the route's meaning in plain Python, of the values that were put in.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.daemon.operations.copies import Copy
from tests.databases.base.servers import Server
from tests.needs import needed

SALT = "a salt of some length"
MANY = int(os.environ.get("SHAPED_COPIES", "50"))
Row = dict[str, Any]

VALUES = st.fixed_dictionaries(
    {
        "name": st.none() | st.text("ab ,:'\\é\N{GRINNING FACE}", max_size=6),
        "n": st.none() | st.integers(-(2**31), 2**31 - 1),
        "price": st.none() | st.decimals(-999, 999, places=2).map(lambda number: number + 0),
    }
)
TABLES = st.dictionaries(st.text("ab9é", min_size=1, max_size=4), VALUES, max_size=12)

FILTERS = {
    "": lambda row: True,
    "n > 0": lambda row: row["n"] is not None and row["n"] > 0,
    "name IS NULL OR price < 10": lambda row: row["name"] is None or (
        row["price"] is not None and row["price"] < 10
    ),
}  # fmt: skip
COMPUTED = {
    "CAST(n AS bigint) * 2": lambda row: None if row["n"] is None else row["n"] * 2,
    "name || '!'": lambda row: None if row["name"] is None else row["name"] + "!",
    "price + 1": lambda row: None if row["price"] is None else row["price"] + 1,
}


@st.composite
def routes(draw: st.DrawFn) -> dict[str, Any]:
    """Keys of a route."""
    route: dict[str, Any] = {}
    if text := draw(st.sampled_from(list(FILTERS))):
        route["filter"] = text
    if text := draw(st.none() | st.sampled_from(list(COMPUTED))):
        route["computed"] = {"c": text}
    masks = draw(st.dictionaries(
        st.sampled_from(["name", "n", "price"]),
        st.sampled_from(["redact", "keep_last(2)", "sha256"]),
    ))  # fmt: skip
    masks |= {"id": "sha256"} if draw(st.booleans()) else {}
    hidden = draw(st.sets(st.sampled_from(["name", "n", "price"]), max_size=2)) - masks.keys()
    if masks:
        route["mask"] = masks
        if "sha256" in masks.values():
            route["mask_salt"] = SALT
    if hidden:
        route["drop_columns"] = sorted(hidden)
    if draw(st.booleans()):
        route["rename"] = {"id": "number"}
    if "filter" not in route and draw(st.booleans()):
        route["delete"] = "soft"
    if draw(st.booleans()):
        route["metadata"] = ["_op", "_offset"]
    return route


def text_of(value: Any) -> str:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def masked(value: Any, words: str) -> str | None:
    if value is None:
        return None
    text = text_of(value)
    if words == "redact":
        return "***"
    if words == "sha256":
        return hashlib.sha256((SALT + text).encode()).hexdigest()
    return "*" * (len(text) - 2) + text[-2:] if len(text) > 2 else "*" * len(text)


def shown(route: Mapping[str, Any], row: Row) -> Row | None:
    """The row as the target is to have it, None where it is not there."""
    if not FILTERS[route.get("filter", "")](row):
        return None
    masks, hidden = route.get("mask", {}), route.get("drop_columns", ())
    made = {
        route.get("rename", {}).get(name, name): masked(value, masks[name])
        if name in masks
        else value
        for name, value in row.items()
        if name not in hidden
    }
    for name, text in route.get("computed", {}).items():
        made[name] = COMPUTED[text](row)
    made |= {"_DELETED": False} if route.get("delete") == "soft" else {}
    return made | ({"_op": None, "_offset": None} if "metadata" in route else {})


def in_order(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def literal(value: Any) -> str:
    if isinstance(value, str):
        return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"
    return "NULL" if value is None else str(value)


@pytest.fixture(scope="module")
def server(servers: Mapping[str, Server]) -> Server:
    with needed():
        return servers["mariadb"]


def filled(server: Server, folder: Path, route: Mapping[str, Any], rows: list[Row]) -> Copy:
    """The table with its rows, and the copy that a load makes."""
    copy = Copy(server, server, folder, route)
    copy.run(
        "CREATE TABLE {t} (id VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, name VARCHAR(20),"
        " n INT, price DECIMAL(5,2)) CHARSET utf8mb4"
    )
    for row in rows:
        values = ", ".join(literal(row[name]) for name in ("id", "name", "n", "price"))
        copy.run(f"INSERT INTO {{t}} VALUES ({values})")
    copy.loaded(rows=5)
    return copy


def examples(number: int) -> settings:
    """So many: each loads a table and compares it three times."""
    return settings(
        max_examples=number,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


EXAMPLE = given(route=routes(), values=TABLES, data=st.data())


@examples(4)
@EXAMPLE
def test_a_loaded_table_is_the_route_of_the_source_s(
    route: dict[str, Any],
    values: dict[str, Row],
    data: st.DataObject,
    server: Server,
    tmp_path: Path,
) -> None:
    """It has the rows that the route shows, and verifies as equal; what is planted is found."""
    assert_is_the_route(route, values, data, server, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(900)
@examples(MANY)
@EXAMPLE
def test_many_loaded_tables_are(
    route: dict[str, Any],
    values: dict[str, Row],
    data: st.DataObject,
    server: Server,
    tmp_path: Path,
) -> None:
    """The same of many more."""
    assert_is_the_route(route, values, data, server, tmp_path)


def assert_is_the_route(
    route: dict[str, Any],
    values: dict[str, Row],
    data: st.DataObject,
    server: Server,
    folder: Path,
) -> None:
    """It has the rows that the route shows, verifies as equal, and a row that is changed at the
    target, or is not there, or should not be, is found: that one alone."""
    rows: list[Row] = [{"id": key, **others} for key, others in values.items()]
    copy = filled(server, folder, route, rows)
    wanted = [made for row in rows if (made := shown(route, row)) is not None]
    assert in_order(copy.stored().to_pylist()) == in_order(wanted)
    table = copy.verified()
    assert table["equal"], table
    assert table["rows"] == table["target_rows"] == len(wanted)

    key = route.get("rename", {}).get("id", "id")
    column = "c" if "computed" in route else None
    plain = [name for name in ("name", "n", "price") if name in (wanted or [{}])[0]]
    victim = data.draw(st.sampled_from(wanted)) if wanted else None
    if victim is None:
        copy.plant(f"INSERT INTO {{t}} (`{key}`) VALUES ('new')")
        told = {"what": "extra", "key": "new"}
    elif (name := column or (plain[0] if plain else None)) is not None:
        changed = f"IF(`{name}` IS NULL, 1, NULL)"
        copy.plant(f"UPDATE {{t}} SET `{name}` = {changed} WHERE `{key}` = {literal(victim[key])}")
        told = {"what": "differs", "key": victim[key]}
    else:
        copy.plant(f"DELETE FROM {{t}} WHERE `{key}` = {literal(victim[key])}")
        told = {"what": "missing", "key": victim[key]}
    table = copy.verified(repair=True)
    (found,) = table["rows_that_differ"]
    assert found["what"] == told["what"]
    assert list(found["key"].values()) == [told["key"]]
    again = copy.verified()
    kept = told["what"] == "extra" and route.get("delete") == "soft"
    assert again["equal"] is not kept, table


def test_a_row_that_was_deleted_softly_is_none(server: Server, tmp_path: Path) -> None:
    """It does not count on either side; a living row under its key does."""
    rows: list[Row] = [{"id": str(n), "name": "a", "n": n, "price": None} for n in range(3)]
    copy = filled(server, tmp_path, {"delete": "soft"}, rows)
    copy.plant("INSERT INTO {t} (id, name, _DELETED) VALUES ('9', 'gone', TRUE)")
    assert copy.verified()["equal"]
    copy.plant("UPDATE {t} SET _DELETED = TRUE WHERE id = '1'")
    table = copy.verified()
    assert [(row["what"], row["key"]) for row in table["rows_that_differ"]] == [
        ("missing", {"id": "1"})
    ]


def test_a_shape_that_names_a_column_which_is_not_there_is_refused(
    server: Server, tmp_path: Path
) -> None:
    """A mask with a typo would show everything."""
    copy = filled(server, tmp_path, {}, [])
    copy.routed({"mask": {"nmae": "redact"}})
    table = copy.verified()
    assert "mask names column nmae" in table["skipped"], table

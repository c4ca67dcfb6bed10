"""Addresses of ``binlogd replicate``: who, where, which tables; never a password."""

from __future__ import annotations

import pytest

from daemon.cli.base.address import (
    BadAddress,
    is_database,
    is_same_server,
    parse_address,
    patterns_of,
)


@pytest.mark.parametrize(
    ("text", "url", "user", "name"),
    [
        ("mysql://reader@db.example/shop", "mysql://db.example/shop", "reader", "shop"),
        ("mariadb://r%40x@[::1]:3307/a.b", "mariadb://[::1]:3307/a.b", "r@x", "a-b"),
        ("postgresql://r@h/9lives", "postgresql://h/9lives", "r", "db-9lives"),
        ("mysql://r@db.example", "mysql://db.example", "r", "db-example"),
    ],
)
def test_it_tells_url_user_and_name(text: str, url: str, user: str, name: str) -> None:
    found = parse_address(text, "the source")
    assert (found.url, found.user, found.name) == (url, user, name)


@pytest.mark.parametrize(
    "text",
    ["mysql://r:s3cret@h/shop", "postgresql://r:s3cret@h/shop", "mysql://r:s3c@ret@h/shop",
     "http://r:s3cret@h/x", "mysql://:s3cret@h/shop"],
)  # fmt: skip
def test_a_password_in_it_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadAddress, match="has a password in it") as error:
        parse_address(text, "the source")
    assert "s3c" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mysql://h/shop", "names no user"),
        ("postgresql://r@h", "names no database"),
        ("oracle://r@h/x", "is not mysql://"),
        ("shop", "is not mysql://"),
        ("jdbc:mysql://r@h/x", "without jdbc:"),
        ("mysql://r@a,b/x", "several servers"),
        ("mysql://r@%2Frun%2Fs/x", "Unix socket"),
        ("mysql://r@h/x?ssl=1", "--tls"),
        ("mysql://r@h:99999/x", "99999 is no port"),
    ],
)
def test_what_can_t_be_had_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        parse_address(text, "the source")


@pytest.mark.parametrize(
    ("text", "tables", "taken", "left"),
    [
        ("mysql://r@h/shop", [], ("shop.*",), ()),
        ("mysql://r@h", [], ("*",), ()),
        ("postgresql://r@h/shop", [], ("*",), ()),
        ("mysql://r@h/shop", ["orders, items", "other.*"],
         ("shop.orders", "shop.items", "other.*"), ()),
        ("postgresql://r@h/shop", ["orders", "crm.*", "!log_*"], ("public.orders", "crm.*"),
         ("public.log_*",)),
        ("mysql://r@h/shop", ["!log_*"], ("shop.*",), ("shop.log_*",)),
    ],
)  # fmt: skip
def test_tables_are_patterns(
    text: str, tables: list[str], taken: tuple[str, ...], left: tuple[str, ...]
) -> None:
    assert patterns_of(parse_address(text, "the source"), tables) == (taken, left)


def test_a_table_alone_needs_a_database() -> None:
    with pytest.raises(BadAddress, match=r"write DATABASE\.TABLE"):
        patterns_of(parse_address("mysql://r@h", "the source"), ["orders"])


def test_one_server_has_several_names() -> None:
    one = parse_address("mysql://r@127.0.0.1/shop", "the source")
    assert is_same_server(one, parse_address("mysql://w@localhost:3306/", "--into"))
    assert not is_same_server(one, parse_address("mysql://w@localhost:3307/", "--into"))


def test_places_that_are_no_database() -> None:
    assert not any(map(is_database, ("./lake", "s3://b/x", "sqlite:x.db", "C:\\lake")))
    assert all(map(is_database, ("mysql://u@h/", "postgresql://u@h/x", "jdbc:mysql://h/")))

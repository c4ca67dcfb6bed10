"""Searching, sorting, choosing among thousands of targets; what counts as not well."""

from __future__ import annotations

import pytest

from daemon.admin.page.history import History
from daemon.admin.page.targets import View, chosen, rows_of, targets_section
from daemon.admin.status.words import short
from settings.shell import quoted
from tests.daemon.admin.page.documents import failing, quarantined, status, target, writing

WELL = [target(f"lake.shop.t{n:04}", n) for n in range(250)]
ILL = [failing("lake.shop.bad", "no space"), quarantined("lake.shop.shut", "a column is gone")]


def shown(view: View) -> list[str]:
    rows = rows_of(status([*WELL, *ILL, writing("lake.shop.busy", 3)]), History())
    return [row.target["target"] for row in chosen(rows, view)]


def test_what_is_not_well_comes_first() -> None:
    assert shown(View())[:3] == ["lake.shop.bad", "lake.shop.shut", "lake.shop.busy"]


def test_only_what_is_not_well() -> None:
    assert shown(View(ill=True)) == ["lake.shop.bad", "lake.shop.shut"]


def test_a_search_takes_any_part_in_any_case() -> None:
    assert shown(View(search="T001")) == [f"lake.shop.t001{n}" for n in range(10)]


@pytest.mark.parametrize(
    ("sort", "first"),
    [("name", "lake.shop.bad"), ("write", "lake.shop.bad"), ("buffered", "lake.shop.shut")],
)
def test_orders(sort: str, first: str) -> None:
    assert shown(View(sort=sort))[0] == first


def test_a_hundred_are_on_a_page_and_the_last_page_has_the_rest() -> None:
    """A page beyond the last one is the last one."""
    rows = rows_of(status(WELL), History())
    first, last = (targets_section(rows, View(sort="name", page=n)) for n in (1, 99))
    assert ("1 to 100 of 250" in first, "page=2" in first, "t0099" in first) == (True,) * 3
    assert ("201 to 250 of 250" in last, "page=2" in last, "t0249" in last) == (True,) * 3
    assert "t0100" not in first


@pytest.mark.parametrize(
    ("query", "view"),
    [
        ("", View()),
        ("q=a%20b&sort=lag&ill=1&page=3", View("a b", "lag", True, 3)),
        ("sort=nonsense&page=-1&ill=yes", View()),
        ("page=\u0663", View()),
        ("page=99999999999999", View()),
        ("q=" + "x" * 5000, View("x" * 300)),
    ],
)
def test_an_address_says_the_view(query: str, view: View) -> None:
    """Whatever is no answer to its question counts as not said."""
    assert View.of(query) == view
    assert View.of(view.address().partition("?")[2]) == view


def test_what_is_not_well_has_a_reason() -> None:
    """In one line, without the target's name again."""
    rows = rows_of(status([*ILL, target("lake.shop.calm", 5)]), History())
    assert [row.why for row in rows] == [
        "no space", "",
        "in quarantine: a column is gone (8,200 messages, 3.2 MiB kept)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "-"), (float("nan"), "-"), (0, "0"), (2.5, "2.5"), (950, "950"), (12_300, "12.3k"),
     (4_200_000, "4.2M")],
)  # fmt: skip
def test_numbers_are_short(number: float | None, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("lake.shop.t", "lake.shop.t"),
        ("lake.shop.`a``b`; rm -rf /", "'lake.shop.`a``b`; rm -rf /'"),
        ("lake.'x'\u202e", r"$'lake.\'x\'\U0000202e'"),
    ],
)
def test_a_command_can_be_copied_whatever_the_name(name: str, word: str) -> None:
    """A shell makes the name of it again (``tests/daemon/admin/page/test_page.py``)."""
    assert quoted(name) == word

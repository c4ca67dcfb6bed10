"""Texts of others stay texts."""

from __future__ import annotations

import pytest

from daemon.admin.page.format import Html, join, name, tag

HOSTILE = [
    ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("\" onmouseover='x", "&quot; onmouseover=&#x27;x"),
    ("a\u202egnp.exe", "a\\u202egnp.exe"),
    ("a\nb\x1b[2J", "a\\nb\\x1b[2J"),
    ("&lt;", "&amp;lt;"),
    ("\ud800", "\\ud800"),
]


@pytest.mark.parametrize(("text", "written"), HOSTILE)
def test_a_text_is_escaped_wherever_it_stands(text: str, written: str) -> None:
    """As content, in an attribute, beside markup."""
    assert tag("td", text) == f"<td>{written}</td>"
    assert tag("a", "x", href=text) == f'<a href="{written}">x</a>'
    assert join(tag("b", "x"), text) == f"<b>x</b>{written}"
    assert name(text) == f"<bdi>{written}</bdi>"


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "1 < 2")) == "<p><b>1 &lt; 2</b></p>"


def test_markup_that_is_changed_is_a_text_again() -> None:
    """Whatever ``str`` makes of it: only the builders' results are trusted."""
    assert not isinstance(tag("b", "x") + "<i>", Html)


def test_attributes() -> None:
    """Names of the language, none, and one without a value."""
    assert tag("input", class_="a", aria_label="b", checked=True, value=None, hidden=False) == (
        '<input class="a" aria-label="b" checked/>'
    )

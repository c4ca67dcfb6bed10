"""The boundary for text from outside: whatever comes in, what goes out can be written and read."""

from __future__ import annotations

import io
import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from changes.model.printable import (
    PrintableStream,
    distinct,
    holds_half,
    json_text,
    original,
    own_json_text,
    printable,
    reason_of,
)

SIGNS = st.sampled_from(
    "a\\nux1é数\x00\x07\x1b\n\r\t\x7f\x85\x9f\u200e\u2028\u202e\ufeff\ud800\udcff"
)
HOSTILE = st.text(SIGNS | st.characters(), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=6,
)


@given(HOSTILE)
def test_a_text_acts_on_nothing(text: str) -> None:
    """It is UTF-8, in one line, and a terminal shows it."""
    for made in (printable(text), distinct(text), reason_of(ValueError(text))):
        made.encode()
        assert made.isprintable() or made == printable(made)
        assert "\n" not in made
        assert "\x1b" not in made


@given(HOSTILE)
def test_a_distinct_text_leads_back(text: str) -> None:
    """So no key merges with another."""
    assert original(distinct(text)) == text


@given(JSON)
def test_json_is_read_by_everybody_and_says_the_same(value: object) -> None:
    """Half a character alone has no form that others may read: it is spelt."""
    text = json_text(value)
    assert text == printable(text)
    assert msgspec.json.decode(text.encode()) is not ...
    if not holds_half(value):
        assert json.loads(text) == value
    assert json.loads(own_json_text(value, indent=1)) == value
    own_json_text(value, indent=1).encode()


@given(HOSTILE)
def test_a_command_prints_it(text: str) -> None:
    """To a stream that takes UTF-8 alone; its own line ends stay."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    print(text, file=PrintableStream(stream))  # type: ignore[arg-type]
    stream.flush()
    shown = raw.getvalue().decode()
    assert shown.count("\n") == text.count("\n") + 1
    assert "\x1b" not in shown


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_without_a_text_has_a_reason() -> None:
    """Those of a user's function may be anything."""
    assert reason_of(Odd()) == "its text can't be made (RuntimeError)"
    assert reason_of(KeyError()) == "KeyError"

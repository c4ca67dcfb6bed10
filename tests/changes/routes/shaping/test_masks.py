"""Masks: what they show of each type, and what they refuse."""

from __future__ import annotations

import datetime
import hashlib
from decimal import Decimal

import pyarrow as pa
import pytest

from changes.routes.shaping.masking import masked
from changes.routes.shaping.masks import Mask, mask_of

SALT = "0123456789abcdef"


def shown(mask: str, values: list[object], type_: pa.DataType) -> list[object]:
    """The values of a column behind a mask."""
    column = pa.chunked_array([pa.array(values[:1], type_), pa.array(values[1:], type_)])
    found = masked(column, mask_of(mask), SALT)
    assert found.type == pa.string()
    texts: list[object] = found.to_pylist()
    return texts


def hashed(text: str) -> str:
    """As any database can do it, too: SHA2(CONCAT(salt, value), 256)."""
    return hashlib.sha256((SALT + text).encode()).hexdigest()


def test_the_last_characters_are_kept() -> None:
    """Of a text that is no longer than that, nothing is."""
    texts = ["+49 171 2345", "2345", "", None, "äöüß€12"]
    assert shown("keep_last(4)", texts, pa.string()) == [
        "********2345", "****", "", None, "***ß€12"
    ]  # fmt: skip


def test_whole_numbers_keep_their_digits() -> None:
    assert shown("keep_last(2)", [12345, None, 7], pa.int64()) == ["***45", None, "*"]


def test_what_is_redacted_shows_only_whether_it_is_null() -> None:
    assert shown("redact", [1, None], pa.int32()) == ["***", None]
    assert shown("redact", [b"\0", None], pa.binary()) == ["***", None]


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (pa.string(), "späße", "späße"),
        (pa.int32(), -5, "-5"),
        (pa.int64(), -5, "-5"),
        (pa.decimal128(20, 0), Decimal(-5), "-5"),
        (pa.decimal128(12, 4), Decimal("1.5000"), "1.5"),
        (pa.decimal128(38, 10), Decimal("0.0000000001"), "0.0000000001"),
        (pa.decimal128(38, 0), Decimal("100"), "100"),
        (pa.bool_(), True, "true"),
        (pa.date32(), datetime.date(2024, 2, 29), "2024-02-29"),
        (
            pa.timestamp("us"),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
            "2024-02-29 01:02:03.000004",
        ),
    ],
)
def test_a_value_is_hashed_as_its_text(type_: pa.DataType, value: object, text: str) -> None:
    """The same text whatever the width of the type: a wider one keeps the hashes."""
    assert shown("sha256", [value, None, value], type_) == [hashed(text), None, hashed(text)]


def test_bytes_are_hashed_as_they_are() -> None:
    assert shown("sha256", [b"\xff\0"], pa.binary()) == [
        hashlib.sha256(SALT.encode() + b"\xff\0").hexdigest()
    ]


@pytest.mark.parametrize("words", ["", "keep_last", "keep_last(0)", "keep_last(-1)", "md5", "SHA"])
def test_an_unknown_mask_is_named(words: str) -> None:
    with pytest.raises(ValueError, match=r"allowed: keep_last\(n\), redact, sha256"):
        mask_of(words)


def test_what_tells_rows_apart_is_only_hashed() -> None:
    """Others would make one row of two; and a float has several texts."""
    for mask in (Mask("redact"), Mask("keep_last", 4)):
        assert mask.problem(pa.string(), key=True) is not None
    assert Mask("sha256").problem(pa.string(), key=True) is None
    assert Mask("sha256").problem(pa.float64(), key=True) is not None
    assert Mask("keep_last", 1).problem(pa.binary(), key=False) is not None

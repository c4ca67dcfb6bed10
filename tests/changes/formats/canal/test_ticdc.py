"""TiCDC's messages as it writes them unless told otherwise: types without their parameters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import BadRecord, FormatOptions
from tests.changes.formats.canal.messages import column, decode, message

OPTIONS = FormatOptions()


def ticdc(word: str, *texts: str | None, **others: Any) -> list[bytes]:
    """A message of each value; TiCDC's have the ``id`` 0, which no message of Canal has."""
    types = {"id": "int", "v": word}
    return [
        message("INSERT", [{"id": str(n), "v": text}], types=types, id=0, **others)
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("word", "given", "arrow", "kept"),
    [
        ("decimal", "1234567890123.4500", pa.string(), "1234567890123.4500"),
        ("decimal unsigned", "0.10", pa.string(), "0.10"),
        ("bit", "81", pa.decimal128(20, 0), Decimal(81)),
        ("bit", "18446744073709551615", pa.decimal128(20, 0), Decimal(2**64 - 1)),
        ("bigint unsigned", "18446744073709551615", pa.decimal128(20, 0), Decimal(2**64 - 1)),
        ("float unsigned", "1.5", pa.float32(), 1.5),
        ("blob", "\u00ff\u0000", pa.binary(), b"\xff\x00"),
        ("enum", "", pa.string(), ""),
        ("enum", "red", pa.string(), "red"),
        ("decimal(10,2)", "1.50", pa.decimal128(10, 2), Decimal("1.50")),
        ("bit(1)", "1", pa.bool_(), True),
    ],
)
def test_types(word: str, given: str, arrow: pa.DataType, kept: object) -> None:
    """What the missing parameters leave open is kept exactly; with them all is as Canal's."""
    values = ticdc(word, given, None, given)
    found = decode(*values).table["v"]
    assert (found.type, found.to_pylist()) == (arrow, [kept, None, kept])
    (told,) = CanalJson(OPTIONS).explain(values[0])
    assert told.misfit is None  # type: ignore[union-attr]


def test_bare_words_of_canal_mean_what_they_mean_in_mysql() -> None:
    """Canal prints a type as the table's definition has it: DECIMAL is DECIMAL(10,0)."""
    assert column("decimal", "5").type == pa.decimal128(10, 0)
    assert column("bit", "1").type == pa.bool_()


@pytest.mark.parametrize("word", ["enum", "set"])
def test_numbers_of_labels_that_are_not_told(word: str) -> None:
    """A number that stands for labels is refused where nothing says which they are."""
    with pytest.raises(BadRecord, match=f"v: '2' counts labels that are not named by {word}"):
        decode(*ticdc(word, "2"))

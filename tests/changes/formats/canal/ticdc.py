"""TiCDC's messages as it writes them unless told otherwise: types without their parameters; its
commit timestamp as the source position."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from changes.model.model import FormatOptions
from tests.changes.formats.canal.messages import message, row, update
from tests.changes.formats.cases import Case

POSITIONS = FormatOptions(extra={"positions": "tidb-commit-ts"})

TYPES: list[tuple[str, str, pa.DataType, object]] = [
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
]
"""What the missing parameters leave open is kept exactly; with them all is as Canal's."""


def value(word: str, number: int, text: str | None) -> bytes:
    """TiCDC's messages have the ``id`` 0, which no message of Canal has."""
    return message(data=[{"id": str(number), "v": text}], types={"id": "int", "v": word}, id=0)


def ticdc(commit: int | None, **more: Any) -> bytes:
    """A row's insert, committed then."""
    return message(_tidb={} if commit is None else {"commitTs": commit}, **more)


TICDC = [
    *(
        Case(f"TiCDC's {word}: {text[:40]!r}",
             [value(word, n, each) for n, each in enumerate((text, None, text))],
             rows=[("U", {"id": n, "v": each}) for n, each in enumerate((kept, None, kept))],
             columns={"id": pa.int32(), "v": arrow})
        for word, text, arrow, kept in TYPES
    ),
    *(
        Case(f"a number of labels that TiCDC's {word} does not tell", value(word, 1, "2"),
             unfit=f"v: '2' counts labels that are not named by {word}")
        for word in ("enum", "set")
    ),
    *(
        Case(f"Canal's bare {word} means what it means in MySQL",
             message(data=[{"id": "1", "v": text}], types={"id": "int", "v": word}),
             rows=[("U", {"id": 1, "v": kept})], columns={"id": pa.int32(), "v": arrow})
        for word, text, arrow, kept in (("decimal", "5", pa.decimal128(10, 0), Decimal(5)),
                                        ("bit", "1", pa.bool_(), True))
    ),
    *(
        Case(f"rows in the order of commits: {says}", bad, unfit=f"shop.orders: {said}",
             options=POSITIONS, good=ticdc(5))
        for says, bad, said in (
            ("Canal's own message has none, which would be a guess", message(),
             "the message has no _tidb.commitTs"),
            ("nor has this one", ticdc(None), "the message has no _tidb.commitTs"),
            ("a negative one is none", ticdc(-1), "the message has no _tidb.commitTs"),
            ("a row that lacks columns would hide what an older one carries",
             update([{"id": "1", "name": "b"}], [{"name": "a"}], _tidb={"commitTs": 6}),
             "column price is missing"),
            ("one of the key alone", update([{"id": row()["id"]}], _tidb={"commitTs": 6}),
             "column name is missing"),
        )
    ),
]  # fmt: skip

"""Hard values of each of the lake's types, and one text for each value. Pure."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from random import Random

import pyarrow as pa

from changes.sql.spark.schema import arrow_type

TEXTS = (
    "", " ", "a", "A", "á", "a\u0301", "a ", "a  ", "ß", "ss", "ﬀ", "i", "İ", "\u0131", "数据",
    "😀", "€", "\u00a0", "\u200b", "\ufeff", "\u0301", "~", "\\", "'", '"', "`", "\t", "\n", "\r\n",
    "a\0b",
    "\0", "NULL", "null", r"\N", "0", "00", "1", "-0", "1e5", "+1", "01", "t", "true", "sad", "ok",
    "Ok", "OK", "it's", "two words", "a,b", "sad,ok", "ok,sad", "ü", "{}", '{"a": 1}', '{"a":1}',
    '{"b":1, "a":1.50}', "[1,  2]", "20:50:02.497300250", "20:50:02", "2020-01-02", "08:08",
    "2020-01-02 03:04:05.678901", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "2000-1-1",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "<a/>", "<a></a>", "1.0", "1.00", "12,5", "$1.50",
    "192.168.0.1", "::1", "::0001", "(1,2)", "[1,3)", "{1,2}", "x" * 41, "y" * 300, "101",
)  # fmt: skip
"""Also what types of other values would take, and print otherwise."""


def hard_value(rng: Random, type_: str) -> object:
    """One, never null."""
    if type_.startswith("decimal"):
        return _decimal(rng, type_)
    return _VALUES[type_](rng)


def column(values: list[object], type_: str) -> pa.Array:
    """Values as a batch has them."""
    if type_.startswith("timestamp"):
        zone = "UTC" if type_ == "timestamptz" else None
        micros = pa.array(values, pa.int64())
        return micros.cast(pa.timestamp("us", zone))
    if type_ == "date":
        return pa.array(values, pa.int32()).cast(pa.date32())
    return pa.array(values, arrow_type(type_))


def texts(array: pa.Array | pa.ChunkedArray, type_: str) -> list[str | None]:
    """One text for each value: two are the same, to the bit, if their texts are."""
    if type_.startswith("timestamp"):
        numbers = array.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        return [None if n is None else str(n) for n in numbers]
    if type_ == "date":
        return [None if n is None else str(n) for n in array.cast(pa.int32()).to_pylist()]
    return [None if value is None else _text(value) for value in array.to_pylist()]


def _text(value: object) -> str:
    match value:
        case float():
            return "nan" if math.isnan(value) else struct.pack(">d", value).hex()
        case bytes():
            return value.hex()
        case str():
            return value.encode().hex()
        case _:
            return str(value)


def _decimal(rng: Random, type_: str) -> Decimal:
    digits, scale = (int(one) for one in type_[8:-1].split(","))
    most = 10**digits - 1
    number = rng.choice((0, 1, -1, most, -most, rng.randint(-most, most), rng.randint(-999, 999)))
    number = max(-most, min(most, number))
    sign, figures = ("-" if number < 0 else ""), str(abs(number)).rjust(scale + 1, "0")
    return Decimal(f"{sign}{figures[:-scale]}.{figures[-scale:]}" if scale else f"{sign}{figures}")


def _double(rng: Random) -> float:
    return rng.choice(
        (
            0.0, -0.0, 0.1, 1 / 3, -1.5, 1e15, 1e16, 5e-324, 2.2250738585072014e-308,
            1.7976931348623157e308, -1.7976931348623157e308, math.nan, math.inf, -math.inf,
            123456789.123456789, rng.uniform(-1e9, 1e9),
            struct.unpack(">d", rng.randbytes(8))[0],
        )
    )  # fmt: skip


def _single(rng: Random) -> float:
    edges = (0.0, -0.0, 0.1, 1.4e-45, 3.4028234e38, 16777217.0, 1e-40, rng.uniform(-9, 9))
    value = rng.choice(edges)
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def _string(rng: Random) -> str:
    if rng.random() < 0.8:
        return rng.choice(TEXTS)
    points = (rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x11000))
    chosen = (rng.choice(points) for _ in range(rng.randint(1, 6)))
    return "".join(chr(one) for one in chosen if not 0xD800 <= one <= 0xDFFF)


_DAY = 86_400_000_000
_FIRST, _LAST = -719_162, 2_932_896


def _date(rng: Random) -> int:
    return rng.choice((_FIRST, _LAST, 0, -1, -25_567, 24_855, rng.randint(_FIRST, _LAST)))


def _moment(rng: Random) -> int:
    at = dt.datetime(2024, 2, 29, 23, 59, 59, tzinfo=dt.UTC).timestamp()
    seconds = rng.choice((0, -1, 1, int(at), 2**31 - 1, 2**31, rng.randint(1, 2**31)))
    edge = rng.choice((_FIRST * _DAY, (_LAST + 1) * _DAY - 1))
    micros = rng.choice((0, 1, 499_999, 500_000, 999_999, rng.randrange(10**6)))
    return edge if rng.random() < 0.1 else seconds * 10**6 + micros


_VALUES: dict[str, Callable[[Random], object]] = {
    "boolean": lambda rng: rng.random() < 0.5,
    "int": lambda rng: rng.choice(
        (0, 1, -1, 5, 69, 70, 99, 127, 128, 255, 1970, 2**31 - 1, -(2**31), rng.randint(-99, 99))
    ),
    "long": lambda rng: rng.choice(
        (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), rng.randint(-(2**40), 2**40))
    ),
    "float": _single,
    "double": _double,
    "string": _string,
    "binary": lambda rng: rng.choice(
        (b"", b"\0", b"a", b"a\0", b"a ", b"a", b"\xff\xfe", rng.randbytes(rng.randint(0, 50)))
    ),
    "date": _date,
    "timestamp": _moment,
    "timestamptz": _moment,
}
TYPES = (*_VALUES, "decimal(10, 2)", "decimal(20, 0)", "decimal(38, 10)")

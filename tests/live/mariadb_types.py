"""MariaDB's column types with literals of each: edges, plain values, odd texts. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from tests.live.schema import Type

TEXTS = (
    "", " ", "a", "x y", "it's", 'a "quoted" one', "back\\slash", "tab\tnew\nline", "ü", "数据",
    "🙂", "NULL", "null", "0", "1e5", "{}", "trailing  ",
)  # fmt: skip

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium's connectors for other databases write for a value that they leave out."""


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _whole(low: int, high: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        return str(rng.choice((low, high, 0, 1, rng.randint(low, high))))

    return literal


def _decimal(digits: int, scale: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        most = 10**digits - 1
        value = rng.choice((0, most, -most, rng.randint(-most, most), rng.randint(-99, 99)))
        sign, text = "-" if value < 0 else "", str(abs(value)).rjust(scale + 1, "0")
        return f"{sign}{text[:-scale]}.{text[-scale:]}" if scale else f"{sign}{text}"

    return literal


def _text(longest: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        if longest >= 20 and rng.random() < 0.1:
            return quoted("x" * longest)
        return quoted(rng.choice((*TEXTS, UNAVAILABLE))[:longest])

    return literal


def _bytes(longest: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        if longest >= len(UNAVAILABLE) and rng.random() < 0.1:
            return f"x'{UNAVAILABLE.encode().hex()}'"
        return f"x'{rng.randbytes(rng.randint(0, longest)).hex()}'"

    return literal


def _date(rng: Random) -> str:
    year = rng.choice((1000, 1969, 1970, 2024, 9999))
    return f"'{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"


def _clock(rng: Random) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _datetime(digits: int, years: tuple[int, ...]) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        day = f"{rng.choice(years)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        return f"'{day} {_clock(rng)}{_fraction(rng, digits)}'"

    return literal


def _time(digits: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        whole = rng.choice(("00:00:00", "838:59:58", "-838:59:58", "-00:00:01", _clock(rng)))
        return f"'{whole}{_fraction(rng, digits)}'"

    return literal


def _fraction(rng: Random, digits: int) -> str:
    return f".{rng.randrange(10**digits):0{digits}}" if digits else ""


def _float(rng: Random) -> str:
    value = rng.choice((0.0, 0.1, -1.5, 1e10, 3.25e-7, rng.uniform(-1e6, 1e6)))
    return repr(struct.unpack("f", struct.pack("f", value))[0])


def _double(rng: Random) -> str:
    return repr(rng.choice((0.0, 0.1, -1.5, 1.7e308, 5e-324, rng.uniform(-1e15, 1e15))))


def _one_of(*literals: str) -> Callable[[Random], str]:
    return lambda rng: rng.choice(literals)


_DATETIMES = (1000, 1970, 2024, 9999)
_TIMESTAMPS = (1971, 2024, 2037)

ENUM_OF_THREE = Type("ENUM('a','b','c')", _one_of("'a'", "'b'", "'c'"))
ENUM_OF_FOUR = Type("ENUM('a','b','c','it''s')", _one_of("'a'", "'c'", "'it''s'"))

TYPES: tuple[Type, ...] = (
    Type("TINYINT", _whole(-128, 127)), Type("TINYINT(1)", _whole(0, 1)),
    Type("TINYINT UNSIGNED", _whole(0, 255)), Type("SMALLINT", _whole(-(2**15), 2**15 - 1)),
    Type("MEDIUMINT UNSIGNED", _whole(0, 2**24 - 1)), Type("INT", _whole(-(2**31), 2**31 - 1)),
    Type("INT UNSIGNED", _whole(0, 2**32 - 1)), Type("BIGINT", _whole(-(2**63), 2**63 - 1)),
    Type("BIGINT UNSIGNED", _whole(0, 2**64 - 1)),
    Type("DECIMAL(10,2)", _decimal(10, 2)), Type("DECIMAL(10,1)", _decimal(10, 1)),
    Type("DECIMAL(14,2)", _decimal(14, 2)), Type("NUMERIC(20,0)", _decimal(20, 0)),
    Type("DECIMAL(38,10)", _decimal(38, 10)),
    Type("FLOAT", _float), Type("DOUBLE", _double),
    Type("BIT(1)", _one_of("b'0'", "b'1'")),
    Type("BIT(9)", _one_of("b'0'", "b'101'", "b'111111111'")),
    Type("CHAR(5)", _text(5)), Type("VARCHAR(20)", _text(20)), Type("VARCHAR(200)", _text(200)),
    Type("TEXT", _text(300)), Type("MEDIUMTEXT", _text(70)),
    Type("BINARY(4)", _bytes(4)), Type("VARBINARY(16)", _bytes(16)), Type("BLOB", _bytes(40)),
    Type("DATE", _date), Type("DATETIME", _datetime(0, _DATETIMES)),
    Type("DATETIME(3)", _datetime(3, _DATETIMES)), Type("DATETIME(6)", _datetime(6, _DATETIMES)),
    Type("TIMESTAMP", _datetime(0, _TIMESTAMPS)), Type("TIMESTAMP(6)", _datetime(6, _TIMESTAMPS)),
    Type("TIME", _time(0)), Type("TIME(6)", _time(6)),
    Type("YEAR", _one_of("1901", "1970", "2155")),
    ENUM_OF_THREE, Type("SET('x','y','z')", _one_of("''", "'x'", "'x,z'", "'x,y,z'")),
    Type("JSON", _one_of("'{}'", "'{\"a\": [1, null, \"ü\"]}'", "'[1.50]'", "'null'")),
)  # fmt: skip

WIDER: dict[str, tuple[str, ...]] = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"), "SMALLINT": ("INT", "BIGINT"), "INT": ("BIGINT",),
    "TINYINT UNSIGNED": ("INT UNSIGNED", "INT"), "MEDIUMINT UNSIGNED": ("INT", "INT UNSIGNED"),
    "INT UNSIGNED": ("BIGINT",), "DECIMAL(10,2)": ("DECIMAL(14,2)",), "FLOAT": ("DOUBLE",),
    "CHAR(5)": ("VARCHAR(20)", "TEXT"), "VARCHAR(20)": ("VARCHAR(200)", "TEXT"),
    "VARCHAR(200)": ("TEXT", "MEDIUMTEXT"), "TEXT": ("MEDIUMTEXT",), "VARBINARY(16)": ("BLOB",),
    "DATETIME": ("DATETIME(3)", "DATETIME(6)"), "DATETIME(3)": ("DATETIME(6)",),
    "TIMESTAMP": ("TIMESTAMP(6)",), "TIME": ("TIME(6)",),
}  # fmt: skip
"""Types that hold all values of another one."""

BY_SQL = {type_.sql: type_ for type_ in (*TYPES, ENUM_OF_FOUR)}

KEY_TYPES = (
    Type("INT", lambda rng: str(rng.randint(1, 40))),
    Type("BIGINT", lambda rng: str(rng.randint(1, 40))),
    Type("VARCHAR(20)", lambda rng: f"'k{rng.randint(1, 40)}'"),
)
"""Few values, so that statements meet rows."""

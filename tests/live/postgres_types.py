"""PostgreSQL's column types with literals of each. Pure."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.live.mariadb_types import TEXTS
from tests.live.schema import Type


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def one_of(*literals: str) -> Callable[[Random], str]:
    """One of some literals."""
    return lambda rng: rng.choice(literals)


def _whole(low: int, high: int) -> Callable[[Random], str]:
    return lambda rng: str(rng.choice((low, high, 0, 1, rng.randint(low, high))))


def _decimal(digits: int, scale: int) -> Callable[[Random], str]:
    def literal(rng: Random) -> str:
        most = 10**digits - 1
        value = rng.choice((0, most, -most, rng.randint(-most, most), rng.randint(-99, 99)))
        sign, text = "-" if value < 0 else "", str(abs(value)).rjust(scale + 1, "0")
        return f"{sign}{text[:-scale]}.{text[-scale:]}" if scale else f"{sign}{text}"

    return literal


def _text(longest: int) -> Callable[[Random], str]:
    return lambda rng: quoted(rng.choice(TEXTS)[:longest])


def _long(rng: Random) -> str:
    """Now and then so long that it is stored out of line, and not sent when it does not change."""
    return quoted(rng.randbytes(3000).hex()) if rng.random() < 0.3 else _text(300)(rng)


def _bytes(rng: Random) -> str:
    return f"'\\x{rng.randbytes(rng.choice((0, 1, 7, 5000))).hex()}'"


def _day(rng: Random) -> str:
    year = rng.choice((1, 1582, 1969, 2024, 9999))
    return f"{year:04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _clock(rng: Random, digits: int) -> str:
    whole = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return f"{whole}.{rng.randrange(10**digits):0{digits}}" if digits else whole


def _moment(digits: int) -> Callable[[Random], str]:
    return lambda rng: f"'{_day(rng)} {_clock(rng, digits)}'"


def _zoned(rng: Random) -> str:
    return f"'{rng.randint(1970, 2037)}-0{rng.randint(1, 9)}-11 {_clock(rng, 6)}+05:30'"


def _uuid(rng: Random) -> str:
    return f"'{rng.randbytes(16).hex()}'"


TYPES: tuple[Type, ...] = (
    Type("smallint", _whole(-(2**15), 2**15 - 1)), Type("integer", _whole(-(2**31), 2**31 - 1)),
    Type("bigint", _whole(-(2**63), 2**63 - 1)), Type("numeric(10,2)", _decimal(10, 2)),
    Type("numeric(14,2)", _decimal(14, 2)), Type("numeric(38,10)", _decimal(38, 10)),
    Type("numeric", one_of("0", "1.50", "-12345678901234567890.123456789", "1e20")),
    Type("real", one_of("0", "0.1", "-1.5e10", "3.25e-7")),
    Type("double precision", one_of("0", "0.1", "1.7e308", "-5e-324", "123456789.125")),
    Type("boolean", one_of("true", "false")), Type("bit(8)", one_of("B'00000000'", "B'10000001'")),
    Type("char(5)", _text(5)), Type("varchar(20)", _text(20)), Type("varchar(200)", _text(200)),
    Type("text", _long), Type("bytea", _bytes), Type("date", lambda rng: f"'{_day(rng)}'"),
    Type("timestamp(3)", _moment(3)), Type("timestamp", _moment(6)), Type("timestamptz", _zoned),
    Type("time(3)", lambda rng: f"'{_clock(rng, 3)}'"),
    Type("time", lambda rng: f"'{_clock(rng, 6)}'"), Type("uuid", _uuid),
    Type("json", one_of("'{}'", "'{\"a\":  [1, null, \"ü\"]}'", "'[1.50]'")),
    Type("jsonb", one_of("'{}'", "'{\"b\": 1.50, \"a\": null}'")),
    Type("interval", one_of("'0'", "'1 day 02:03:04.5'", "'-00:00:01'")),
    Type("integer[]", one_of("'{}'", "'{1,NULL,-3}'")), Type("money", one_of("'0'", "'-12.34'")),
    Type("text[]", one_of("'{}'", "'{a,NULL,\"b c\",\"\"}'")), Type("inet", one_of("'10.0.0.1/8'")),
)  # fmt: skip

KINDS = {
    "int2": "number", "int4": "number", "int8": "number", "numeric": "number", "float4": "single",
    "float8": "double", "bool": "number", "bit": "number", "bpchar": "text", "varchar": "text",
    "text": "text", "bytea": "bytes", "date": "date", "timestamp": "moment",
    "timestamptz": "moment", "time": "time", "uuid": "text", "json": "text", "jsonb": "text",
    "interval": "number",
    "_int4": "json", "_text": "json", "money": "number", "inet": "text",
}  # fmt: skip
"""By the name of the type in the catalog, how values are compared."""

WIDER: dict[str, tuple[str, ...]] = {
    "smallint": ("integer", "bigint"), "integer": ("bigint",), "real": ("double precision",),
    "numeric(10,2)": ("numeric(14,2)",), "varchar(20)": ("varchar(200)", "text"),
    "varchar(200)": ("text",), "timestamp(3)": ("timestamp",), "time(3)": ("time",),
}  # fmt: skip

BY_SQL = {type_.sql: type_ for type_ in TYPES}

KEY_TYPES = (
    Type("integer", lambda rng: str(rng.randint(1, 40))),
    Type("bigint", lambda rng: str(rng.randint(1, 40))),
    Type("text", lambda rng: f"'k{rng.randint(1, 40)}'"),
)

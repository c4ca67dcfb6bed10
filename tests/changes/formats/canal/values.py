"""Canal's texts become typed values exactly, or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from changes.model.model import FormatOptions
from tests.changes.formats.canal.messages import message
from tests.changes.formats.cases import Case

LABELS_64 = ",".join(f"'m{n}'" for n in range(64))

VALUES = [
    ("int(11)", "-2147483648", -(2**31)),
    ("int(5) unsigned zerofill", "00042", 42),
    ("int unsigned", "4294967295", 2**32 - 1),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint unsigned", "18446744073709551615", Decimal(2**64 - 1)),
    ("decimal(10,2)", "12345678.91", Decimal("12345678.91")),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("decimal(65,30)", "1." + "1" * 30, "1." + "1" * 30),
    ("double", "0.1", 0.1),
    ("float", "3.14", 3.140000104904175),
    ("varchar(5)", "", ""),
    ("varchar(5)", "null", "null"),
    ("text", "a\u0000\U0001f600\n", "a\u0000\U0001f600\n"),
    ("date", "2024-02-29", date(2024, 2, 29)),
    ("datetime", "2024-02-29 23:59:59", datetime(2024, 2, 29, 23, 59, 59)),
    ("datetime", "2024-02-29 23:59:59.0", datetime(2024, 2, 29, 23, 59, 59)),
    ("datetime(6)", "1000-01-01 00:00:00.000001", datetime(1000, 1, 1, microsecond=1)),
    ("datetime(2)", "2024-01-01 00:00:00.12", datetime(2024, 1, 1, microsecond=120_000)),
    ("timestamp", "2024-01-01 00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
    ("time", "-838:59:59", "-838:59:59"),
    ("time", "838:59:59", "838:59:59"),
    ("time(3)", "-00:00:00.500", "-00:00:00.500000"),
    ("time(6)", "10:20:30.000000", "10:20:30"),
    ("time", "-00:00:00", "00:00:00"),
    ("time", "8:00:00.0", "08:00:00"),
    ("enum('a','b')", "2", "b"),
    ("enum('a','b')", "0", ""),
    ("enum('a','b')", "", ""),
    ("enum('a','b')", "b", "b"),
    ("enum('10','1')", "1", "10"),
    ("enum('10','1')", "10", "10"),
    ("enum", "b", "b"),
    ("set('a','b','c')", "5", "a,c"),
    ("set('a','b','c')", "0", ""),
    ("set('a','b','c')", "", ""),
    ("set('a','b','c')", "c,a", "c,a"),
    (f"set({LABELS_64})", "18446744073709551615", LABELS_64.replace("'", "")),
    (f"set({LABELS_64})", "9223372036854775808", "m63"),
    ("bit(1)", "1", True),
    ("bit(1)", "0", False),
    ("bit(8)", "255", 255),
    ("bit(63)", "9223372036854775807", 2**63 - 1),
    ("bit(64)", "18446744073709551615", Decimal(2**64 - 1)),
    ("year(4)", "0000", 0),
    ("year", "2155", 2155),
    ("blob", "a\u0000\u0080\u00ff", b"a\0\x80\xff"),
    ("binary(4)", "a", b"a"),
    ("varbinary(4)", "", b""),
    ("geometry", "\u0001\u0002", b"\1\2"),
    ("tinyint(1)", "1", 1),
    ("json", '{"a": 1}', '{"a": 1}'),
    ("json", '{"b": 1, "a": [1.0, null]}', '{"b": 1, "a": [1.0, null]}'),
    ("uuid", "123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440000"),
    ("inet4", "1.2.3.4", "1.2.3.4"),
    ("INET6", "::ffff:1.2.3.4", "::ffff:1.2.3.4"),
    ("int(11)", None, None),
    ("decimal(4,2)", None, None),
    ("timestamp", None, None),
]
"""By the type in ``mysqlType``."""

MISFITS = [
    ("int(11)", "A101"),
    ("int(11)", ""),
    ("int(11)", "1.0"),
    ("int(11)", " 1"),
    ("int(11)", "0xFFFFFFFF"),
    ("int(11)", "2147483648"),
    ("bigint", "9223372036854775808"),
    ("bigint unsigned", "100000000000000000000"),
    ("bigint unsigned", "1.5"),
    ("bigint unsigned", "1e2"),
    ("bigint unsigned", "-1"),
    ("bigint unsigned", "18446744073709551616"),
    ("int(10) unsigned", "-1"),
    ("tinyint unsigned", "-1"),
    ("bit(8)", "-1"),
    ("bit(64)", "-1"),
    ("decimal(10,2)", "1.239"),
    ("decimal(10,2)", "123456789.00"),
    ("decimal(10,2)", "abc"),
    ("float", "1e39"),
    ("double", "nan"),
    ("double", "inf"),
    ("double", "1,5"),
    ("bit(1)", "2"),
    ("bit(8)", "b"),
    ("bit(64)", "18446744073709551616000"),
    ("year", "two"),
    ("enum('a','b')", "3"),
    ("enum('a','b')", "c"),
    ("enum('a','b')", "9" * 5000),
    ("enum", "1"),
    ("set('a','b')", "4"),
    ("set('a','b')", "a,c"),
    ("set", "1"),
    ("blob", "\u0100"),
    ("time", "839:00:00"),
    ("time", "10:60:00"),
    ("time", "1:2"),
    ("time", "00:00:00.1234567"),
    ("date", "2023-02-29"),
    ("date", "0000-01-01"),
    ("datetime", "2024-01-01 24:00:00"),
    ("datetime(6)", "2024-01-01 00:00:00.1234567"),
    ("datetime", "2024-01-01T00:00:00+02:00"),
    # What Canal makes of their bytes.
    ("UUID", "\x12>Eg\ufffd\x12\u04e4VBfUD\0\0"),
    ("inet4", "\1\2\3\4"),
    ("inet6", "\0" * 15 + "\1"),
]
"""What does not fit its type exactly is refused by table, column, value and type."""

ZERO_DATES = [
    ("date", "0000-00-00"),
    ("date", "2024-01-00"),
    ("date", "2024-00-10"),
    ("datetime", "0000-00-00 00:00:00"),
    ("datetime(6)", "0003-00-00 00:00:01.000001"),
    ("timestamp", "0000-00-00 00:00:00"),
]
"""Days that no lake has."""

IN_ZONES = [
    ("Asia/Shanghai", "timestamp(3)", "2024-01-01 08:00:00.5",
     datetime(2024, 1, 1, microsecond=500_000, tzinfo=UTC)),
    ("Asia/Shanghai", "datetime", "2024-01-01 08:00:00", datetime(2024, 1, 1, 8)),
    # When the clocks go back, the earlier of both points in time is taken.
    ("Europe/Berlin", "timestamp", "2024-10-27 02:30:00",
     datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
]  # fmt: skip
"""TIMESTAMP is a reading of the configured zone's clocks, DATETIME the same in any zone."""


def value(kind: str, *texts: str | None) -> bytes:
    """A message of rows with a column v of that type."""
    rows = [{"id": str(place), "v": text} for place, text in enumerate(texts)]
    return message(data=rows, types={"id": "int", "v": kind})


def kept(kind: str, text: str | None, expected: object, zone: str = "UTC") -> Case:
    """A value and what the lake has of it."""
    shown = None if text is None else text[:40]
    return Case(f"{kind[:40]} in {zone}: {shown!r}", value(kind, text),
                rows=[("U", {"id": 0, "v": expected})], options=FormatOptions(zone))  # fmt: skip


def misfit(kind: str, text: str, zone: str = "UTC") -> Case:
    """A value that is refused, behind a null."""
    is_no = f"is not {'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
    said = f"counts labels that are not named by {kind}" if kind in ("enum", "set") else is_no
    return Case(f"{kind}, not: {text[:40]!r}", value(kind, None, text),
                unfit=f"shop.orders: v: {text[:60]!r} {said}",
                options=FormatOptions(zone))  # fmt: skip


def zero(kind: str, text: str, zero_dates: str) -> Case:
    """A day that no lake has: null, or with zero_dates = "error" a misfit like any other."""
    options, says = FormatOptions(zero_dates=zero_dates), f"zero_dates={zero_dates}: {kind} {text}"
    if zero_dates == "null":
        found = [("U", {"id": n, "v": None}) for n in range(2)]
        return Case(says, value(kind, text, None), rows=found, options=options)
    said = f"shop.orders: v: '{text}' is not a {kind}"
    return Case(says, value(kind, "2024-01-02", text), unfit=said, options=options)


DEFINITIONS = ("enum('a','b')", "enum('b','a')", "enum('a','b')", "enum('a','b','c')",
               "enum('a','b')", "varchar(9)", "enum('x','b')")  # fmt: skip
EXACT = {"id": "bigint", "d": "decimal(38,20)", "u": "bigint unsigned", "f": "double"}

BESIDE_OTHERS = [
    Case("a day that does not exist stays an error beside zero dates",
         value("date", "0000-00-00", "2023-02-29"), unfit="v: '2023-02-29' is not a date"),
    Case("Canal moves sqlType up for single values; only mysqlType counts",
         [message(data=[{"id": "1", "v": text}], types={"id": "int", "v": "bigint unsigned"},
                  sqlType={"id": 4, "v": number})
          for text, number in (("1", -5), ("18446744073709551615", 3))],
         rows=[("U", {"id": 1, "v": Decimal(v)}) for v in (1, 2**64 - 1)]),
    Case("an enumeration that is defined anew gives old numbers their old labels",
         [message(data=[{"id": str(place), "v": "2"}], types={"id": "int", "v": kind})
          for place, kind in enumerate(DEFINITIONS)],
         rows=[("U", {"id": n, "v": v}) for n, v in enumerate("babbb2b")]),
    *(
        Case(f"a {word} without digits has those that MySQL means, unless they are declared",
             message(data=[{"id": "1", "p": "1.5"}], types={"id": "int", "p": word}),
             unfit="p: '1.5' is not a decimal(10,0), which MySQL means by a decimal without "
             "digits; where its writer leaves them out, declare the column in types")
        for word in ("decimal", "DECIMAL unsigned", "numeric")
    ),
    Case("numbers as JSON numbers keep every digit: they never pass through a float",
         message(data="ROWS", types=EXACT).replace(
             b'"ROWS"', b'[{"id": 9223372036854775807, "u": 18446744073709551615, "f": 1.5e3, '
             b'"d": 123456789012345678.12345678901234567890}]'),
         rows=[("U", {"id": 2**63 - 1, "u": Decimal(2**64 - 1), "f": 1500.0,
                      "d": Decimal("123456789012345678.12345678901234567890")})]),
]  # fmt: skip

CASES = [
    *(kept(*each) for each in VALUES),
    *(misfit(*each) for each in MISFITS),
    *(zero(*each, zero_dates) for zero_dates in ("null", "error") for each in ZERO_DATES),
    *(kept(kind, text, expected, zone) for zone, kind, text, expected in IN_ZONES),
    # When the clocks go forward, no point in time has the readings between.
    misfit("timestamp", "2024-03-31 02:30:00", "Europe/Berlin"),
    *BESIDE_OTHERS,
]

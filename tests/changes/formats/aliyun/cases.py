"""Alibaba DTS's Avro records: both layouts, images, values by their types' numbers, refusals."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from changes.model.model import Ddl, TableName, TruncateTable
from settings.counted import counted
from tests.changes.formats.aliyun.messages import date_time, integer, long, record, text
from tests.changes.formats.cases import Case, FormatCases

ROW = [integer(1), text("a")]
IN_LAKE = {"id": 1, "name": "a"}
MARKS = ("BEGIN", "COMMIT", "ROLLBACK", "HEARTBEAT", "CHECKPOINT", "NOOP", "CONTROL", "FINISH")


def value(number: int, given: Any, source: str = "MySQL") -> bytes:
    """A row with a column v, whose type has that number."""
    fields = [("id", 8), ("v", number)]
    return record(after=[integer(1), given], fields=fields, source=source)


def kept(number: int, given: Any, expected: object, source: str = "MySQL") -> Case:
    """A value between nulls; integers of other sources than MySQL are text."""
    key = 1 if source == "MySQL" else "1"
    return Case(
        f"{source}'s type {number}: {given} is {expected!r}",
        [value(number, each, source) for each in ("NULL", given, None)],
        rows=[("U", {"id": key, "v": each}) for each in (None, expected, None)],
        good=record(after=[integer(9)], fields=[("id", 8)], source=source),
    )


def misfit(number: int, given: Any, said: str) -> Case:
    return Case(f"type {number}: {given}", value(number, given), unfit=f"shop.orders: v: {said}")


def unfit(says: str, message: bytes, reason: str) -> Case:
    return Case(says, message, unfit=f"shop.orders: {reason}")


def cut_short(length: int, says: str) -> Case:
    """A record whose first text behind the images' beginning has another length."""
    whole = record(after=ROW, tags={})
    at = whole.index(b"utf8mb4") - 1
    said = "not a record of Alibaba DTS"
    return Case(says, whole[:at] + long(length) + whole[at + 1 :], unfit=f"shop.orders: {said}")


VALUES = [
    (1, integer(-128), -128),
    (3, integer(2**32 - 1), 2**32 - 1),
    (8, integer(-(2**63)), -(2**63)),
    (16, integer(5), 5),
    (246, ("Decimal", "-12345678901234567890.1230", 30, 4), "-12345678901234567890.1230"),
    (4, ("Float", 3.140000104904175, 12, 0), 3.140000104904175),
    (5, ("Float", 0.1, 22, 0), 0.1),
    (10, date_time(2020, 1, 2), date(2020, 1, 2)),
    (10, date_time(2020, 1, 2, 0, 0, 0, 0), date(2020, 1, 2)),
    (11, date_time(None, None, None, 838, 59, 59), "838:59:59"),
    (11, date_time(None, None, None, 0, 0, -1, -500000), "-00:00:01.500000"),
    (11, date_time(0, 0, 0, 3, 4, 5), "03:04:05"),
    (12, date_time(2020, 1, 2), datetime(2020, 1, 2)),
    (12, date_time(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 3, 4, 5)),
    (12, date_time(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, 3, 4, 5, 6)),
    (12, date_time(0, 0, 0, 0, 0, 0), None),
    (13, date_time(1999), 1999),
    (13, date_time(2020, 0, 0, 0, 0, 0), 2020),
    (13, integer(2020), 2020),
    (7, ("Timestamp", 1700000000, 123456), datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)),
    (7, ("Timestamp", -1, 0), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    (253, text("é", "latin1", "latin-1"), "é"),
    (253, ("Character", "latin1", b"\x80\x81"), "€\x81"),
    (253, text("圖形碼", "big5", "big5"), "圖形碼"),
    (253, text("乪", "gbk", "gbk"), "乪"),
    (253, text("∆", "ucs2", "utf-16-be"), "∆"),
    (254, ("Character", "binary", b"\x00\xff"), "AP8="),
    (252, ("BinaryObject", "blob", b"\x00\xff"), "AP8="),
    (255, ("BinaryGeometry", "point", b"\x01"), "AQ=="),
    (255, ("TextGeometry", "point", "POINT (1 2)"), "POINT (1 2)"),
    (247, ("TextObject", "enum", "b"), "b"),
    (245, ("TextObject", "json", '{"a": 1.50}'), '{"a": 1.50}'),
]
"""As MySQL's number of the column's type says; parts of a date that are zero add nothing."""

OF_OTHERS = [
    ("Oracle", ("Decimal", "1.50", 10, 2), "1.50"),
    ("Oracle", date_time(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),
    ("Oracle", date_time(5, 3), "5-03"),
    ("Oracle", date_time(-5, -3), "-5-03"),
    ("Oracle", date_time(0, -3), "-0-03"),
    ("Oracle", date_time(None, None, 5, 3, 4, 5, 6), "5 03:04:05.000006"),
    ("Oracle", date_time(None, None, -5, -3, -4, -5, -6), "-5 03:04:05.000006"),
    ("Oracle", date_time(None, None, 0, 0, 0, -5), "-0 00:00:05"),
    ("Oracle", date_time(-44, 3, 15), "-0044-03-15"),
    ("PostgreSQL", ("TimestampWithTimeZone", (2020, 1, 2, 3, 4, 5, 6), "+08:00"),
     "2020-01-02 03:04:05.000006 +08:00"),
    ("PostgreSQL", date_time(2020, 1, 2), "2020-01-02"),
    ("PostgreSQL", date_time(None, None, None, 1, 2, 3), "01:02:03"),
    ("PostgreSQL", integer(7), "7"),
]  # fmt: skip
"""Their types' numbers are not known: every column is text. An interval has either years and
months, or days and a time, as Oracle prints them."""

MISFITS = [
    (8, integer(2**63), "'9223372036854775808' is not a bigint"),
    (3, integer("1x"), "'1x' is not a bigint"),
    (5, ("Float", float("nan"), 0, 0), "'nan' is not a double"),
    (10, date_time(2020, 1, 2, 3, 4, 5), "'2020-01-02 03:04:05' is not a date"),
    (10, date_time(2020, None, 2), "the parts [2020, None, 2] are no date"),
    (11, date_time(2020, 1, 2, 3, 4, 5), "'2020-01-02 03:04:05' is not a time"),
    (11, date_time(None, None, None, 1, -2, 3),
     "the parts [1, -2, 3, 0] of a time differ by their sign"),
    (11, date_time(None, None, None, None, 2, 3), "a date without any part"),
    (12, date_time(2020, 2, 30, 0, 0, 0), "'2020-02-30 00:00:00' is not a datetime"),
    (12, date_time(None, None, None, 1, 2, 3), "'01:02:03' is not a datetime"),
    (12, date_time(), "a date without any part"),
    (13, date_time(2020, 5), "'2020-05' is not a year"),
    (7, ("Timestamp", 2**60, 0), "1152921504606846976 seconds are no time"),
    (7, ("Timestamp", 1, 1234567), "1234567 millionths are more than a second"),
    (7, ("Timestamp", 1, -1), "-1 millionths are more than a second"),
    (253, ("Character", "utf8", b"\xff"), "b'\\xff' is not text in utf8"),
    (253, ("Character", "klingon", b"a"), "the character set 'klingon' is not known"),
]  # fmt: skip
"""Nothing of a value is left out in silence, and nothing is made up."""

SQL = "TRUNCATE TABLE orders"

ALIYUN = FormatCases(
    "aliyun-dts-avro",
    "shop.orders",
    record(after=[integer(99)], fields=[("id", 8)]),
    [
        *(
            Case(f"a record may end with bornTimestamp ({born}), or before it",
                 [record(after=ROW, born=born), record(after=ROW)], rows=[("U", IN_LAKE)] * 2)
            for born in (None, 0, 1696984408, -1)
        ),
        *(
            unfit(f"what follows the record and is no number ({rest.hex()}) is a third layout",
                  record(after=ROW) + rest,
                  f"{counted(len(rest), 'byte')} left behind the record: no bornTimestamp")
            for rest in (b"\x00\x00", b"\x80", b"\x80" * 10 + b"\x00")
        ),
        Case(
            "inserts and updates are rows, a delete ends its key",
            [
                record("INSERT", ROW),
                record("UPDATE", [integer(1), "NULL"], ROW),
                record("DELETE", None, [integer(1), "NULL"]),
            ],
            rows=[("U", IN_LAKE), ("U", {"id": 1, "name": None}), ("D", {"id": 1})],
        ),
        Case(
            "NONE keeps the stored value, NULL overwrites it",
            [
                record("INSERT", ROW),
                record("UPDATE", [integer(1), "NONE"], [integer(1), "NONE"]),
                record("UPDATE", [integer(1), "NULL"], ROW),
            ],
            rows=[("U", IN_LAKE), ("U", {"id": 1}), ("U", {"id": 1, "name": None})],
        ),
        Case(
            "another key after than before ends the old one",
            record("UPDATE", [integer(2), text("a")], ROW),
            rows=[("D", {"id": 1}), ("U", {"id": 2, "name": "a"}, {"id": 1})],
            before=IN_LAKE,
            at_ms=1696984408000,
        ),
        Case(
            "images follow the record's own fields, whatever order the one before had",
            [record(after=ROW), record(after=[text("b"), integer(2)],
                                       fields=[("name", 253), ("id", 8)])],
            rows=[("U", IN_LAKE), ("U", {"id": 2, "name": "b"})],
        ),
        Case(
            "an empty image is none: some writers put an empty list where there is no row",
            record("DELETE", [], ROW),
            rows=[("D", {"id": 1})],
        ),
        unfit("an empty image of an insert", record("INSERT", []),
              "a record of operation INSERT without afterImages"),
        *(
            Case(
                f"without a primary key it is a changelog, other unique keys may be null: {tags}",
                record("INSERT", ROW, tags=tags),
                changelog=[("I", IN_LAKE)],
                good=record("INSERT", ROW, tags=tags),
            )
            for tags in ({}, {"pk_uk_info": '{"uk1":["name"]}'}, {"pk_uk_info": ""})
        ),
        *(
            unfit(f"the key {tag} would make a changelog of a table",
                  record(after=ROW, tags={"pk_uk_info": tag}), "the tag pk_uk_info")
            for tag in ("[", '["id"]', '{"PRIMARY":"id"}')
        ),
        *(
            Case(f"{mark} has nothing to apply", record(mark, fields=None, name=None), nothing=True)
            for mark in MARKS
        ),
        Case("no message has nothing to apply", None, nothing=True),
        Case("an empty message has nothing to apply", b"", nothing=True),
        Case(
            "the row after a DDL is its statement, about tables of the record's database",
            record("DDL", SQL, fields=None, name="shop"),
            statements=[Ddl(TableName("shop", "orders"), SQL, (TruncateTable(),))],
            at_ms=1696984408000,
        ),
        Case(
            "a DDL without a statement",
            record("DDL", None, fields=None, name="shop"),
            unreadable="a DDL record without its statement",
        ),
        *(
            Case(f"{name} is {table}: a schema belongs to the database's name",
                 record(after=ROW, name=name), rows=[("U", IN_LAKE)], table=table)
            for name, table in (("db.t", "db.t"), ("db.public.t", "db.public.t"),
                                ("db.a\\u002Eb", "db.a.b"))
        ),
        *(
            Case(f"a row of {name!r} names no table", record(after=ROW, name=name),
                 unreadable=f"about {name!r}: DATABASE.TABLE is required")
            for name in (None, "", "db", "a.b.c.d", "db.")
        ),
        unfit("an update without its row", record("UPDATE", None, ROW),
              "a record of operation UPDATE without afterImages"),
        unfit("a delete without its row", record("DELETE", ROW, None),
              "a record of operation DELETE without beforeImages"),
        unfit("a value too few", record("INSERT", ROW[:1]), "1 value for 2 fields"),
        unfit("a name twice", record("INSERT", ROW, fields=[("id", 8), ("id", 8)]),
              "two fields of one name"),
        unfit("a row without its key", record("INSERT", ["NONE", text("a")]),
              "key column id is missing"),
        unfit("a null key", record("INSERT", ["NULL", text("a")]), "key column id is null"),
        *(
            Case(f"a length of {length} at the beginning costs no memory",
                 long(0) * 3 + long(length) + b"x", unreadable="a text of")
            for length in (2**31, 2**62, -1, -(2**62))
        ),
        *(cut_short(length, f"a length of {length} within") for length in (2**31, 2**62, -(2**62))),
        *(kept(*each) for each in VALUES),
        *(kept(3, given, expected, source) for source, given, expected in OF_OTHERS),
        *(misfit(*each) for each in MISFITS),
    ],
)  # fmt: skip

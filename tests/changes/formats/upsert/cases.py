"""Upsert rows: by their record's key, with or without it in the value, and what is refused."""

from __future__ import annotations

from typing import Any

from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from tests.changes.formats.cases import NAMED, Case, FormatCases, Row
from tests.changes.formats.json_messages import Number
from tests.changes.formats.upsert.records import record

GOOD = record({"id": 9}, {"id": 9})
A: Row = ("U", {"id": "1", "name": "a"})
VALUES = {
    "n": Number("1.10"),
    "big": 2**70,
    "flag": True,
    "text": "ü",
    "doc": Number('{"a": [1]}'),
}
TEXTS = {"n": "1.10", "big": str(2**70), "flag": "true", "text": "ü", "doc": '{"a": [1]}'}
TYPES = (("id", "bigint"), ("price", "bigint"), ("ok", "boolean"))
DMS = {
    "data": {"id": 1},
    "metadata": {"record-type": "data", "operation": "load", "schema-name": "s"},
}
HAVE = 'd.t: have its writer make the key an object of the key\'s columns, such as {"id": 1}: '
NO_KEYS = [
    (None, "it is empty"),
    (b"", "it is empty"),
    (b"1", "Expected `object`, got `int`"),
    (b'"a"', "Expected `object`, got `str`"),
    (b"[1]", "Expected `object`, got `array`"),
    (b"null", "Expected `object`, got `null`"),
    (b"abc", "JSON is malformed"),
    (b"\0\0\0\0\7{}", "it begins with a zero byte, as what a schema registry's serializers write"),
]
DAMAGED_KEYS = [
    (b"{}", "it has none"),
    (b'{"id":1', "Input data was truncated"),
    (b'{"id":\xff}', "JSON is malformed"),
]
"""Routing lets an object pass that is damaged."""
NO_ROWS = [
    (b"1", "its value is no row: Expected `object`, got `int`"),
    (b'"a"', "its value is no row: Expected `object`, got `str`"),
    (b"[{}]", "its value is no row: Expected `object`, got `array`"),
    (b"{", "its value is no row: Input data was truncated"),
    (b'{"a":1}{}', "its value is no row: JSON is malformed: trailing characters"),
    (b'{"a":"\xff"}', "a value is not valid text"),
    (b'{"a":["\xff"]}', "a value is not valid text"),
    (b"\x1f\x8b\x08", "its value is no row: it is compressed by gzip"),
    (b"[" * 100_000, "its value is no row: "),
]
DOCUMENT = record({"id": 9}, {"a": [1]})


def unfit(says: str, value: Any, reason: str, **how: Any) -> Case:
    return Case(says, value, unfit=f"d.t: {reason}", **how)


UPSERT_ROWS = FormatCases(
    "upsert-json",
    "d.t",
    GOOD,
    [
        Case("the record of a key has its row", record({"id": 1}, {"id": 1, "name": "a"}), rows=[A],
             at_ms=None, before=None),
        *(
            Case(f"without a value ({value!r}) the row is gone", record({"id": 3}, value),
                 rows=[("D", {"id": "3"})])
            for value in (None, b"", b"null", b" null\n", b"  ")
        ),
        Case("a row has its key also where the writer leaves it out (Flink's EXCEPT_KEY)",
             [record({"id": 1}, {"name": "a"}), record({"id": 1}, {"id": 1, "name": "a"})],
             rows=[A, A]),
        Case("a key of several columns, in any order, and partly in the value",
             [
                 record({"region": "eu", "id": 1}, {"id": 1, "name": "a"}),
                 record({"id": 2, "region": "us"}, {"name": "b", "region": "us"}),
                 record({"region": "us", "id": 2}),
             ],
             rows=[
                 ("U", {"region": "eu", "id": "1", "name": "a"}),
                 ("U", {"region": "us", "id": "2", "name": "b"}),
                 ("D", {"region": "us", "id": "2"}),
             ],
             good=record({"region": "ap", "id": 9}, {})),
        Case("a record has its whole row: what it lacks is null",
             [record({"id": 1}, {"a": "x"}), record({"id": 2}, {"b": "y"})],
             rows=[
                 ("U", {"id": "1", "a": "x", "b": None}),
                 ("U", {"id": "2", "a": None, "b": "y"}),
             ]),
        *(
            Case(f"the key {key!r} as the value's {value!r}: a number as text is that number",
                 record({"id": key}, {"id": value}), rows=[("U", {"id": kept})])
            for key, value, kept in (
                (1, "1", "1"), ("2", 2, "2"), (True, "true", "true"),
                (Number("1.50"), "1.50", "1.50"),
            )
        ),
        Case("of two members of one name the last counts",
             record(b'{"id":0,"id":1}', b'{"name":1,"name":"a"}'), rows=[A]),
        Case("names may be odd", record({'k"': 1}, {'a"b': 1, "c\\d": 2, "e\nf": 3, "ü": 4}),
             rows=[("U", {'k"': "1", 'a"b': "1", "c\\d": "2", "e\nf": "3", "ü": "4"})],
             good=record({'k"': 9}, {})),
        Case("numbers digit by digit, objects and lists as their JSON, spaces included",
             record({"id": 1}, VALUES), rows=[("U", {"id": "1", **TEXTS})]),
        Case("configured types, of keys too", record({"id": 7}, {"price": 15, "ok": True}),
             rows=[("U", {"id": 7, "price": 15, "ok": True})], types=TYPES),
        unfit("a value of another type than the configured one", record({"id": 8}, {"price": "x"}),
              "price: 'x' is not a bigint", types=TYPES),
        Case("a configured key of another case", record({"id": 1}, {"name": "a"}), rows=[A],
             keys=("ID",)),
        Case("a changelog has each record, of other keys too",
             [record({"id": 1}, {"name": "a"}), record({"id": 1, "r": 2}),
              record({"id": 3}, {"name": "b"})],
             mode=Mode.APPEND,
             changelog=[("U", {"id": "1", "name": "a", "r": None}),
                        ("D", {"id": "1", "name": None, "r": "2"}),
                        ("U", {"id": "3", "name": "b", "r": None})]),
        *(
            unfit(f"a value of another key: {value}", record({"id": 1}, value),
                  "id is another one in the value than in the record's key")
            for value in ({"id": 2}, {"id": None}, {"id": "1 "}, {"id": True}, {"id": [1]})
        ),
        *(
            Case(f"a key that names no columns: {key!r}, {'a row' if row else 'a delete'}",
                 record(key, row), unreadable=HAVE + said)
            for key, said in NO_KEYS for row in ({"id": 1}, None)
        ),
        *(
            Case(f"a damaged key: {key!r}, {'a row' if row else 'a delete'}",
                 record(key, row), unfit=HAVE + said)
            for key, said in DAMAGED_KEYS for row in ({"id": 1}, None)
        ),
        *(
            unfit(f"{says}: {value[:20]!r}", record({"id": 1}, value), said, good=good)
            for value, said in NO_ROWS
            for says, good in (("a value that is no row", GOOD), ("amid documents", DOCUMENT))
        ),
        unfit("a message of others that are not read", record({"id": 1}, DMS),
              "a message of AWS DMS's JSON"),
        unfit("names that differ by case only", record({"id": 1}, {"ID": 1}),
              "the column names id and ID differ by case only"),
        unfit("another key than before: a delete would not find its row",
              [GOOD, record({"id": 1, "region": "eu"}, {"name": "a"})],
              "the key was (id) and is now (id, region)"),
        unfit("another key than the configured one", record({"id": 1}, {"name": "a"}),
              "the record's key is (id), and keys says (name)", keys=("name",),
              good=record({"name": 1}, {})),
        unfit("a wider key than the configured one",
              record({"id": 1, "region": "eu"}, {"name": "a"}),
              "the record's key is (id, region), and keys says (id)", keys=("id",)),
        unfit("a null key tells no rows apart", record({"id": None}, {"name": "a"}),
              "key column id is null"),
        Case("headers don't matter", pack(b' {"id":1}', b'{"name":"a"}', [("h", b"1")]), rows=[A]),
    ],
    FormatOptions(extra=NAMED),
)  # fmt: skip

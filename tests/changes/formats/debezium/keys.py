"""Which row a Debezium record speaks of: its key, replica identities, values that were not sent."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from tests.changes.formats.cases import Case, Row
from tests.changes.formats.debezium.messages import (
    BARE,
    MYSQL,
    POSTGRES,
    UNAVAILABLE,
    change,
    dumps,
    envelope,
    record,
    typed,
    wrapped,
)

ROW = {"id": 1, "name": "a"}
A: Row = ("U", {"id": "1", "name": "a"})
UNKEYED = change("c", ROW, key=None)
NAMELESS = {"id": 1, "name": None}
BY_NAME: dict[str, Any] = {"keys": ("name",), "good": change("c", {"id": 9, "name": "z"})}


def unfit(says: str, messages: bytes | Sequence[bytes], reason: str, **how: Any) -> Case:
    return Case(says, messages, unfit=f"shop.orders: {reason}", **{"good": BARE} | how)


def kept(says: str, messages: bytes | Sequence[bytes], *rows: Row, **how: Any) -> Case:
    return Case(says, messages, rows=rows, **{"good": BARE} | how)


FIELDS = {"id": "int32", "code": "string", "n": "int32", "note": "string"}
INDEX = {"id": 0, "code": "x", "n": 0, "note": None}
"""What an index of ``code`` sends of any row; ``id`` and ``n`` are NOT NULL."""
DEFAULT = {"id": 7, "code": "", "n": 0, "note": None}


def delete(before: Any, source: Any = POSTGRES, schema: bool = True) -> bytes:
    """A deleted row of PostgreSQL, whose record key is ``id``."""
    value: Any = envelope("d", None, before, source)
    if schema:
        value = wrapped(value, FIELDS)
        for image in value["schema"]["fields"][:2]:
            for each in image["fields"]:
                each["optional"] = each["field"] == "note"
    return record(value, {"id": before["id"]})


IDENTITIES = [
    *(
        unfit(f"USING INDEX the key is not sent, and 0 stands for it (schema: {schema})",
              delete(INDEX, schema=schema),
              "a deleted row whose key column id is 0, beside a value of code: under REPLICA "
              "IDENTITY USING INDEX", good=delete(DEFAULT, schema=schema))
        for schema in (True, False)
    ),
    unfit("DEFAULT sends the primary key alone, not a configured one", delete(DEFAULT),
          "a deleted row whose key column code is ", keys=("code",),
          good=delete({**DEFAULT, "code": "y", "n": 3})),
    *(
        kept(f"row 0 may be deleted where nothing says that the key was not sent: {says}",
             delete(before, source), ("D", {"id": 0}), good=None)
        for says, before, source in (
            ("DEFAULT", {**DEFAULT, "id": 0}, POSTGRES),
            ("FULL, note may be null", {"id": 0, "code": "x", "n": 3, "note": "y"}, POSTGRES),
            ("MySQL has whole rows", INDEX, MYSQL),
        )
    ),
    kept("an index that is the key or holds it sends it", delete({**DEFAULT, "code": "x"}),
         ("D", {"id": 7}), good=None),
    Case("a changelog without a key has what was sent: it tells no rows apart", delete(INDEX),
         mode=Mode.APPEND, changelog=[("D", INDEX)]),
    *(
        kept(f"a delete under DEFAULT: the image, {before}, says nothing beside the key",
             [change("c", ROW), change("d", None, before, key={"id": 1})], A, ("D", {"id": "1"}))
        for before in (NAMELESS, {"id": 1}, None)
    ),
    kept("an update under DEFAULT: without the old row it is the new one",
         [change("c", ROW), change("u", {**ROW, "name": "b"})],
         A, ("U", {"id": "1", "name": "b"})),
]  # fmt: skip

OF_RECORDS = [
    Case("a table without a primary key has no record keys: it is a changelog",
         [UNKEYED, change("u", ROW, ROW, key=None)],
         changelog=[("I", A[1]), ("U", A[1])], good=UNKEYED),
    *(
        unfit(f"a table's rows can't be by two keys: {said}", [change("c", ROW)] * count + [last],
              f"the key was (id) and is now {said}")
        for count, last, said in (
            (3, change("c", ROW, key=ROW), "(id, name)"), (1, UNKEYED, "none"),
        )
    ),
    kept("garbage in keys does not matter where they are configured",
         [change("c", ROW, key="****")] * 2, A, A, keys=("id",)),
    unfit("it does otherwise: it would be a changelog", change("c", ROW, key="****"),
          "the record key"),
    unfit("a configured column that does not exist", change("c", ROW),
          "key column uuid is missing", keys=("uuid",), good=change("c", {"id": 9, "uuid": "u"})),
    unfit("a delete that tells no key, neither by image nor by record key",
          change("d", None, None, key=None), "key column id is missing in a deleted row",
          keys=("id",)),
    *(
        unfit(f"a configured key that is not the record's needs the old row: {reason}",
              value, reason, **BY_NAME)
        for value, reason in (
            (change("u", ROW), "whether an update changed the key (name) is unknown: its old row "
             "is null (PostgreSQL sends it with REPLICA IDENTITY FULL)"),
            (change("u", ROW, NAMELESS), "the old value of key column name is unknown"),
            (change("d", None, NAMELESS), "key column name is null in a deleted row"),
        )
    ),
    *(
        unfit(f"so it does among records that are decoded as a block, op {op} in it",
              [*[change("c", ROW)] * 3, change(op, ROW, ROW), change("u", ROW)],
              "whether an update changed the key (name) is unknown: its old row is null", **BY_NAME)
        for op in "cd"
    ),
    kept("an update that changes the key, by message.key.columns: the old one ends",
         change("u", {**ROW, "id": 2}, ROW),
         ("D", {"id": "1"}), ("U", {"id": "2", "name": "a"}, {"id": "1"})),
    unfit("a key column without a value", change("c", {"id": None, "name": "a"}, key={"id": 1}),
          "key column id is null"),
    unfit("names that differ by case only", [change("c", ROW), change("c", {"id": 1, "NAME": "x"})],
          "the column names name and NAME differ by case only"),
    kept("names that JSON escapes", change("c", {"id": 1, 'a"b': "x", "ü\n": "y"}),
         ("U", {"id": "1", 'a"b': "x", "ü\n": "y"})),
    kept("columns come and go: one that is missing keeps what is stored",
         [change("c", ROW), change("c", {**ROW, "n": 1}), change("u", ROW)],
         A, ("U", {**A[1], "n": "1"}), A),
    kept("numbers of no declared type keep their digits, whatever a column had before",
         [pack(dumps({"id": n}), dumps(envelope("c", {"id": n, "v": "@"})).replace(
             b'"@"', text.encode()))
          for n, text in enumerate(["1", "-0.10", "1e3", "18446744073709551616", '"x"', "true",
                                    "null", '{"a": 1.50}'])],
         *(("U", {"id": str(n), "v": text})
           for n, text in enumerate(["1", "-0.10", "1e3", "18446744073709551616", "x", "true", None,
                                     '{"a": 1.50}']))),
]  # fmt: skip

KINDS: dict[str, Any] = {
    "id": "int32", "t": "string", "j": ("string", "io.debezium.data.Json"), "b": "bytes",
    "a": "array", "n": "array", "m": "map",
}  # fmt: skip
GONE = {
    "id": 1, "t": UNAVAILABLE, "j": UNAVAILABLE, "a": [UNAVAILABLE],
    "b": base64.b64encode(UNAVAILABLE.encode()).decode(),
    "n": list(UNAVAILABLE.encode()), "m": {UNAVAILABLE: UNAVAILABLE},
}  # fmt: skip

UNSENT = [
    kept("what was not sent (TOAST) is absent, not null",
         [change("c", {**ROW, "n": 1}),
          change("u", {"id": 1, "name": UNAVAILABLE, "n": 2}, source=POSTGRES)],
         ("U", {**A[1], "n": "1"}), ("U", {"id": "1", "n": "2"})),
    kept("text, bytes, lists, maps: each has its form of the placeholder",
         typed("u", KINDS, GONE, source=POSTGRES), ("U", {"id": 1}), good=None),
    *(
        kept(f"a connector may be configured to write another placeholder: {option}",
             change("u", {"id": 1, "name": "~gone~", "n": 1}), ("U", {"id": "1", "n": "1"}),
             options=FormatOptions(extra={"unavailable_value": option}))
        for option in ("~gone~", "hex:7e676f6e657e")
    ),
    unfit("the value of a new row that was not sent stands nowhere: null would be a silent loss",
          change("c", {"id": 2, "name": UNAVAILABLE}, source=POSTGRES),
          "name: a new row without this value"),
    Case("a changelog shows null for it: no row of a table is made of that",
         [change("c", ROW), change("c", {"id": 2, "name": UNAVAILABLE}, source=POSTGRES)],
         mode=Mode.APPEND, good=BARE,
         changelog=[("I", A[1]), ("I", {"id": "2", "name": None})]),
]  # fmt: skip


def at(lsn: Any, op: str, name: str = "a") -> bytes:
    """A change at a place of PostgreSQL's log; None: the record tells none."""
    row = {"id": 1, "name": name}
    images = (None, row) if op == "d" else (row, None)
    return change(op, *images, source={**POSTGRES, "lsn": lsn})


POSITIONS = [
    unfit(f"rows in the source's order need whole records with a place: op {op}, lsn {lsn!r}",
          at(lsn, op, name), said, good=at(9, "u"),
          options=FormatOptions(extra={"positions": "postgres-lsn"}))
    for lsn, op, name, said in (
        *((lsn, op, "a", "the record has no source.lsn")
          for lsn, op in ((None, "c"), (None, "u"), ("7", "u"), (-1, "u"), (None, "d"))),
        (5, "u", UNAVAILABLE, "column name is missing"),
    )
]  # fmt: skip

KEYS = [*IDENTITIES, *OF_RECORDS, *UNSENT, *POSITIONS]

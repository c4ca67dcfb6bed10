"""Canal JSON's messages that are refused, whatever came before them."""

from __future__ import annotations

from typing import Any

from tests.changes.formats.canal.messages import message, row, update
from tests.changes.formats.cases import Case


def unfit(says: str, value: bytes, reason: str, **how: Any) -> Case:
    return Case(says, value, unfit=f"shop.orders: {reason}", **how)


def bad(says: str, value: bytes, reason: str = "not a Canal message") -> Case:
    return Case(says, value, unreadable=reason)


REFUSED = [
    *(
        unfit(f"a statement-format binlog tells no rows, which must not pass in silence: {data}",
              update(data, sql="UPDATE orders SET price = price * 2"),
              "a change written as a statement")
        for data in (None, [])
    ),
    unfit("no data", message(drop=["data"]), "a message of type INSERT without data"),
    unfit("data that is no list", message(data={"id": "1"}), "not a Canal message"),
    unfit("a list in place of a row", message(data=[["1"]]), "not a Canal message"),
    unfit("a text in place of a row", message(data=["1"]), "not a Canal message"),
    unfit("null in place of a row", message(data=[None]), "data holds null in place of a row"),
    unfit("old that is no list", update([row()], "x"), "not a Canal message"),
    unfit("types that are no object", message(types=["int"]), "mysqlType is not"),
    unfit("a column's type that is no text", message(types={"id": 4}), "mysqlType is not"),
    unfit("a key that is no list", message(keys="id"), "pkNames is not"),
    unfit("a key of numbers", message(keys=[1]), "pkNames is not"),
    *(
        unfit(f"a large row of which {tidb} is left", message(_tidb=tidb),
              "a row too large for its producer, which sent only the key (TiCDC)")
        for tidb in ({"onlyHandleKey": True}, {"claimCheckLocation": "s3://x"})
    ),
    unfit("bytes that are no text", message().replace(b'"a"', b'"\xff"'),
          "a value is not valid text"),
    *(
        bad(f"no message at all: {value[:12]!r}", value)
        for value in (b"\xff\xfe\x00garbage", b"{", b"[]", b"null", b'"text"', b"[" * 100_000,
                      message(database="sh\udc80op").replace(b"\\udc80", b"\xff"))
    ),
    bad("a message cut short", message()[:-5]),
    bad("half of a character", message().replace(b'"a"', b'"\\ud800"')),
    bad("an empty object", b"{}", "without a type"),
    *(
        bad(f"a {part} that is {said}", message(**how), f"without a {part}")
        for part in ("table", "database")
        for said, how in (("empty", {part: ""}), ("null", {part: None}), ("left out",
                                                                         {"drop": [part]}))
    ),
    bad("neither, and none is configured", b'{"data": [{"id": 1}], "type": "INSERT"}',
        "without a database, and no default_database is set"),
    bad("a table that is no text", message(table=7), "$.table"),
    bad("a database that is no text", message(database=["shop"]), "$.database"),
    bad("no type", message(drop=["type"]), "without a type"),
    bad("a type that is no text", message(type=3), "$.type"),
    bad("an unknown type", message("UPSERT"), "unknown type 'UPSERT'"),
    bad("a type in small letters", message("insert"), "unknown type 'insert'"),
]  # fmt: skip

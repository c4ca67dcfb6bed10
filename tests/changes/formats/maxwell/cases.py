"""Maxwell's messages: rows by data and old, keys of messages and records, statements, refusals."""

from __future__ import annotations

from typing import Any

from changes.formats.engine.format import pack
from changes.model.model import (
    AddColumn,
    Column,
    Ddl,
    DropColumn,
    DropTable,
    FormatOptions,
    Mode,
    Redefined,
    RenameColumn,
    RenameTable,
    TableName,
    TakeName,
)
from changes.model.types import TEXT
from tests.changes.formats.cases import Case, FormatCases
from tests.changes.formats.json_messages import RECORD_KEY, Number, maxwell
from tests.changes.formats.maxwell.messages import (
    ALL_HIDDEN,
    DATA_HIDDEN,
    KEY,
    encrypted,
    statement,
)

ORDERS = TableName("shop", "orders")
UNNAMED: dict[str, Any] = {"primary_key_columns": None}
"""A message that does not name its table's key."""
BY_NAME = b'{"database":"shop","table":"orders","pk.name":"a"}'
A = ("U", {"id": "1", "name": "a"})
WITH_KEY = FormatOptions(extra={"encryption_key": KEY})
MOVED = [("D", {"id": "1"}), ("U", {"id": "2", "name": "b"}, {"id": "1"})]


BROKEN = [
    {"iv": "AA==", "bytes": encrypted(b"{}")["bytes"]},
    {"iv": encrypted(b"{}")["iv"], "bytes": "AAAA"},
    {"iv": encrypted(b"{}")["iv"], "bytes": ""},
    {"iv": "!", "bytes": "x"},
    {"iv": 1},
    [],
]


def altered(says: str, sql: str, *steps: Any, **others: Any) -> Case:
    """A changed table and what is followed of it."""
    told = Ddl(ORDERS, sql, steps, **others)
    return Case(says, statement("table-alter", sql), statements=[told])


def added(name: str, default: str | None = None) -> AddColumn:
    return AddColumn(Column(name, TEXT.arrow), default)


def bad(says: str, value: bytes, reason: str) -> Case:
    return Case(says, pack(None, value), unreadable=reason)


NUMBERS = [
    "18446744073709551615", "-9223372036854775808", "1.10", "1E-7", "0.1" + "0" * 40,
    "123456789012345678901234567890.12345", "340282366920938463463374607431768211456",
]  # fmt: skip
DOCUMENT = Number('{"a": [1.50,  null], "b":"\\u00e9"}')
DEFAULTS = [
    ("int NOT NULL", "0"),
    ("bit(1) NOT NULL", "0"),
    ("varchar(9) DEFAULT 'x'", "x"),
    ("date DEFAULT '2020-01-02'", "2020-01-02"),
    ("datetime DEFAULT '2020-01-02 03:04:05'", "2020-01-02 03:04:05"),
    ("varbinary(9) DEFAULT 'ab'", "YWI="),
    ("double DEFAULT 1.5", "1.5"),
]

ROWS = [
    Case(
        "inserts and updates are rows, a delete ends its key",
        [
            maxwell("insert"),
            maxwell("update", {"id": 1, "name": "b"}, {"name": "a"}),
            maxwell("delete", {"id": 1, "name": "b"}),
        ],
        rows=[A, ("U", {"id": "1", "name": "b"}), ("D", {"id": "1"})],
        before={"id": 1, "name": "b"},
    ),
    *(
        Case(f"no digit is lost of {number}", maxwell(data={"id": 1, "v": Number(number)}),
             rows=[("U", {"id": "1", "v": number})])
        for number in NUMBERS
    ),
    Case(
        "an object or a list is the text of the message, also where the column held none before",
        [maxwell(data={"id": n, "v": v}) for n, v in enumerate(("x", DOCUMENT, 7, None, []))],
        rows=[("U", {"id": str(n), "v": v})
              for n, v in enumerate(("x", str(DOCUMENT), "7", None, "[]"))],
    ),
    Case(
        "a minimal row image says nothing about the columns that it lacks",
        [maxwell(data={"id": 1, "a": 1, "b": 2}), maxwell("update", {"id": 1, "b": 3})],
        rows=[("U", {"id": "1", "a": "1", "b": "2"}), ("U", {"id": "1", "b": "3"})],
    ),
    Case(
        "with output_nulls=false a column that only old has is null now, not unchanged",
        [
            maxwell(data={"id": 1, "a": 1, "b": 2}),
            maxwell("update", {"id": 1, "b": 2}, {"a": 1}),
        ],
        rows=[("U", {"id": "1", "a": "1", "b": "2"}), ("U", {"id": "1", "a": None, "b": "2"})],
        before={"id": 1, "a": 1, "b": 2},
    ),
    Case(
        "an inserted row lacks nothing: what is left out of it is null",
        [maxwell(data={"id": 1, "a": 1}), maxwell("bootstrap-insert", {"id": 1})],
        rows=[("U", {"id": "1", "a": "1"}), ("U", {"id": "1", "a": None})],
    ),
    Case("a column that only old names is null", maxwell("update", {"id": 1}, {"gone": "x"}),
         rows=[("U", {"id": "1", "gone": None})]),
    Case(
        "names that need escapes",
        maxwell(data={"id": 1, 'a"b': "x", "c\\d": [1], "e\nf": 2}),
        rows=[("U", {"id": "1", 'a"b': "x", "c\\d": "[1]", "e\nf": "2"})],
    ),
    Case(
        "in append mode each change is a row, a delete with what was deleted",
        [maxwell(), maxwell("delete")],
        changelog=[("I", {"id": "1", "name": "a"}), ("D", {"id": "1", "name": "a"})],
        mode=Mode.APPEND,
    ),
    *(
        Case(f"{kind} has no row", maxwell(kind, {}), nothing=True)
        for kind in ("bootstrap-start", "bootstrap-complete")
    ),
    Case("a tombstone: the delete came before it", pack(RECORD_KEY, None), nothing=True),
    Case("an empty tombstone", pack(RECORD_KEY, b""), nothing=True),
    Case("another table", maxwell(table="t2"), rows=[A], table="shop.t2"),
    Case("rows have seconds", maxwell(ts=1477053217), rows=[A], at_ms=1477053217000),
    Case("milliseconds are taken, too", maxwell(ts=1477053126000), rows=[A], at_ms=1477053126000),
    Case("a time that is none", maxwell(ts="soon"), rows=[A], at_ms=None),
    *(
        Case(f"encrypt={what}: opened by the key, its change of key included", hidden,
             rows=MOVED, options=WITH_KEY, before={"id": 1, "name": "b"})
        for what, hidden in (("data", DATA_HIDDEN), ("all", ALL_HIDDEN))
    ),
]  # fmt: skip

KEYS = [
    Case(
        "an old with another key ends that: for people one change, data overlaid with old before",
        maxwell("update", {"id": 2, "name": "b"}, {"id": 1}),
        rows=MOVED,
        before={"id": 1, "name": "b"},
    ),
    Case(
        "where messages don't name the key, the columns of the record's key are it",
        maxwell(data={"ID": 1, "v": 2}, key=RECORD_KEY, **UNNAMED),
        rows=[("U", {"ID": "1", "v": "2"})],
        good=maxwell(data={"ID": 9}, key=RECORD_KEY, **UNNAMED),
    ),
    Case(
        "kafka_key_format=array names them as well",
        maxwell("delete", {"part": 2, "id": 1, "v": 3},
                key=b'["shop","orders",[{"id":1},{"part":2}]]', **UNNAMED),
        rows=[("D", {"id": "1", "part": "2"})],
        good=maxwell(data={"id": 9, "part": 9}, primary_key_columns=["id", "part"]),
    ),
    Case(
        "a record's key of other columns than before",
        [maxwell(key=key, **UNNAMED) for key in (RECORD_KEY, RECORD_KEY, BY_NAME)],
        unfit="shop.orders: the key was (id) and is now (name)",
    ),
    *(
        Case(f"the record's key {key!r} is none: a changelog", maxwell(key=key, **UNNAMED),
             changelog=[("I", {"id": "1", "name": "a"})], good=maxwell(data={"id": 9}, **UNNAMED))
        for key in (None, b"****", b'{"_uuid":"x"}', b"[1,", b"\xff")
    ),
    *(
        Case(f"the record's key {key!r} does not matter where one is configured",
             maxwell(key=key, **UNNAMED), rows=[A], keys=("id",))
        for key in (None, b"****", b'{"_uuid":"x"}', b"[1,", b"\xff")
    ),
    Case(
        "members and columns in camel case: the key's columns are named as before",
        maxwell("delete", {"orderId": 1, "unitPrice": Number("1.50")},
                primaryKeyColumns=["order_id"], **UNNAMED),
        rows=[("D", {"orderId": "1"})],
        good=maxwell(data={"orderId": 9}, primary_key_columns=["orderId"]),
    ),
    Case("a row without its key", maxwell(data={"name": "a"}),
         unfit="shop.orders: key column id is "),  # missing, or a null that was left out
]  # fmt: skip

REFUSED = [
    bad("not an object", b"[]", "not a Maxwell message"),
    bad("no database", b'{"type":"insert","table":"t"}', "of type insert without a database"),
    bad("an unknown type", b'{"type":"merge","database":"d","table":"t"}', "unknown type 'merge'"),
    bad("no type", b'{"database":"d","table":"t"}', "without a type"),
    bad(
        "Maxwell's own dead letter holds a key alone: a row of it would lose the rest",
        b'{"database":"d","table":"t","reason":"RecordTooLarge","data":{"id":1}}',
        "d.t: a row that Maxwell could not send, all but its key is missing: RecordTooLarge",
    ),
    Case(
        "the same of a type",
        maxwell("insert", {"id": 1}, reason="RecordTooLarge"),
        unreadable="shop.orders: a row that Maxwell could not send",
    ),
    Case("a row without data", pack(None, b'{"type":"insert","database":"d","table":"t"}'),
         unfit="d.t: a message of type insert without data", table="d.t"),
    Case("bytes that are no text", maxwell().replace(b'"a"', b'"\xff"'),
         unfit="shop.orders: a value is not valid text"),
    Case("data that is no object", maxwell(data=7), unfit="shop.orders: not a Maxwell message"),
    Case("encrypt=data without a key", DATA_HIDDEN,
         unfit="shop.orders: encrypted, and no encryption_key is set"),
    Case("encrypt=all without a key", ALL_HIDDEN,
         unreadable="encrypted, and no encryption_key is set"),
    *(
        Case(f"another key of {len(key)} bytes: what comes out is no message", DATA_HIDDEN,
             unfit="can't be opened: another key",
             options=FormatOptions(extra={"encryption_key": key}))
        for key in ("fedcba9876543210", "0123456789abcdef" * 2)
    ),
    *(
        Case(f"what is not iv and bytes of whole blocks: {each}",
             maxwell("insert", encrypted=each), unfit="encrypted", options=WITH_KEY)
        for each in BROKEN
    ),
]  # fmt: skip

OLD_ORDERS = {"database": "shop", "table": "old_orders"}
RENAMED = "RENAME TABLE orders TO old_orders, new_orders TO orders"
CHAIN = "RENAME TABLE a TO orders, orders TO old_orders"
GONE = TableName("shop", "old_orders")

STATEMENTS = [
    altered(
        "rows come without types, so a new column is text, its default as rows print it",
        "ALTER TABLE orders ADD price decimal(10,2) NOT NULL DEFAULT 1.5, ADD note text",
        added("price", "1.50"), added("note"),
    ),
    *(
        altered(f"{definition} is {default} in rows of before",
                f"ALTER TABLE orders ADD c {definition}", added("c", default))
        for definition, default in DEFAULTS
    ),
    altered("text is text whatever the type", "ALTER TABLE orders MODIFY id bigint",
            redefined=(Redefined("id", "id", "bigint", None, False, False),)),
    altered("a new name is one", "ALTER TABLE orders CHANGE a b bigint", RenameColumn("a", "b"),
            redefined=(Redefined("a", "b", "bigint", None, False, False),)),
    altered("a statement about another table is not passed over", "ALTER TABLE items ADD c int",
            refused="a statement about shop.items in a message about shop.orders"),
    Case("a changed table without its statement", statement("table-alter", None),
         statements=[
             Ddl(ORDERS, "", refused="a changed table without the statement that changed it")]),
    Case("a created table without its statement", statement("table-create", None),
         statements=[Ddl(ORDERS, "")]),
    altered("a dropped column", "ALTER TABLE orders DROP c", DropColumn("c")),
    altered("a table as it was typed", "ALTER TABLE Shop.ORDERS ADD c int", added("c")),
    Case(
        "of a statement that drops two tables a message drops its own",
        statement("table-drop", "DROP TABLE orders, items"),
        statements=[Ddl(ORDERS, "DROP TABLE orders, items", (DropTable(),))],
    ),
    *(
        Case(
            f"old and new name are told by the message, of several pairs its own: {sql}",
            statement("table-alter", sql, old={"database": "shop", "table": "orders"},
                      **{"def": OLD_ORDERS}),
            statements=[
                Ddl(ORDERS, sql, (RenameTable(GONE),)), Ddl(GONE, sql, (TakeName(ORDERS),)),
            ],
        )
        for sql in (RENAMED, CHAIN)
    ),
    Case(
        "the first row makes a table",
        statement("table-create", "CREATE TABLE orders (id int)"),
        statements=[Ddl(ORDERS, "CREATE TABLE orders (id int)", ())],
        at_ms=1477053126000,
    ),
    Case("a database's creation is nothing",
         statement("database-create", "CREATE DATABASE shop", table=None), statements=[]),
    Case("a database that is dropped does not tell its tables",
         statement("database-drop", "DROP DATABASE shop", table=None),
         statements=[Ddl(TableName("shop", ""), (sql := "DROP DATABASE shop"), refused=sql)]),
    bad("a statement that is no text",
        b'{"type":"table-alter","database":"d","table":"t","sql":7}', "not a Maxwell message"),
]  # fmt: skip

MAXWELL = FormatCases(
    "maxwell-json",
    "shop.orders",
    maxwell(data={"id": 99}),
    [*ROWS, *KEYS, *REFUSED, *STATEMENTS],
)

"""Canal JSON's messages: rows by data and old, keys, types, odd names, what is refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from changes.model.model import FormatOptions, Mode
from tests.changes.formats.canal import values
from tests.changes.formats.canal.messages import TYPES, message, row, update
from tests.changes.formats.canal.refused import REFUSED, unfit
from tests.changes.formats.canal.sent_bytes import BYTES, json_message, sent_bytes
from tests.changes.formats.canal.ticdc import TICDC
from tests.changes.formats.cases import Case, FormatCases, Row

PRICE = Decimal("1.50")
COLUMNS = {"id": pa.int32(), "name": pa.string(), "price": pa.decimal128(10, 2)}
A: Row = ("U", {"id": 1, "name": "a", "price": PRICE})
AB = {"a": "int", "b": "varchar(9)", "v": "int"}
ROW_ID = "__#alibaba_rds_row_id#__"
NAMED = FormatOptions(extra={"default_database": "d", "default_table": "t"})
ODD = ["data", "type", "class", "a b", "a.b", "名前", "x\u00a0y", 'q"q', "b\\b", "f0", "", "old",
       "mysqlType", "_op", "__class__", "tab\tname", "f7"]  # fmt: skip
IMAGES = [[f"c{place}" for place in range(6) if n >> place & 1] for n in range(64)]
NOTHING = ("QUERY", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT", "TIDB_WATERMARK")


def upsert(id: int, name: str | None = "a", *was: int) -> Row:
    """A row of the usual columns; ``was``: the id before."""
    return ("U", {"id": id, "name": name, "price": PRICE}, *({"id": each} for each in was))


def end(id: int) -> Row:
    return ("D", {"id": id})


ROWS = [
    Case("an insert is the row's new state", message(), rows=[A], at_ms=1589373515000, before=None,
         columns=COLUMNS),
    Case("an update is data; before it the row was data overlaid with old, nulls included",
         update([row(name="b")], [{"name": None}]),
         rows=[upsert(1, "b")], before={"id": 1, "name": None, "price": PRICE}),
    Case("columns that a minimal image lacks are in neither row",
         update([{"id": "1", "name": "b"}], [{"name": "a"}]),
         rows=[("U", {"id": 1, "name": "b"})], before={"id": 1, "name": "a"}),
    Case("a key that only old holds did not change", update([{"name": "b"}], [{"id": "1"}]),
         rows=[("U", {"id": 1, "name": "b"})], before={"id": 1, "name": "b"}),
    Case("without old, the key alone is known of before", update([row()]),
         rows=[A], before={"id": 1}),
    *(
        Case(f"an update whose old is {old} changes no key", update([row(), row("2")], old),
             rows=[A, upsert(2)])
        for old in (None, [], [None], [{}])
    ),
    Case("a delete is its key", [message(), message("DELETE", [row("2")])], rows=[A, end(2)],
         before={"id": 2, "name": "a", "price": PRICE}),
    Case("a delete of a key alone", [message(), message("DELETE", [{"id": "2"}])],
         rows=[A, end(2)]),
    Case("a large row that was cut to its key may be a delete",
         message("DELETE", [{"id": "1"}], _tidb={"onlyHandleKey": True, "commitTs": 1}),
         rows=[end(1)]),
    Case("a column that a row lacks keeps its value, null overwrites it",
         [
             message(),
             update([{"id": "1", "price": None}], types={"id": "int", "price": "decimal(10,2)"}),
             message(data=[{"id": "2", "name": "b"}]),
         ],
         rows=[A, ("U", {"id": 1, "price": None}), ("U", {"id": 2, "name": "b"})]),
    Case("rows of one message may differ", update([row(), {"id": "2", "name": "b"}], [{}, {}]),
         rows=[A, ("U", {"id": 2, "name": "b"})]),
    Case("messages without rows give none", [message(), message(data=[]), message(data=None)],
         rows=[A]),
    Case("each change with its place: after images, before images of deletes",
         [
             message(data=[row("1"), row("2")]),
             update([row("3")], [{"id": "1"}]),
             message("DELETE", [row("3", "gone")]),
             message("INIT", [{"id": "4"}]),
         ],
         mode=Mode.APPEND,
         changelog=[
             ("I", {"id": 1, "name": "a", "price": PRICE}),
             ("I", {"id": 2, "name": "a", "price": PRICE}),
             ("U", {"id": 3, "name": "a", "price": PRICE}),
             ("D", {"id": 3, "name": "gone", "price": PRICE}),
             ("I", {"id": 4, "name": None, "price": None}),
         ]),
    *(
        Case(f"{kind} has nothing to apply, and may name no table",
             message(kind, None, drop=["table", "database"]), nothing=True)
        for kind in NOTHING
    ),
    Case("a rows-query event quotes SQL that must not be executed",
         message("QUERY", None, sql="TRUNCATE TABLE orders"), nothing=True),
    Case("messages that name no table are of the configured one",
         b'{"data": [{"id": 1, "name": "a"}], "type": "INSERT"}',
         rows=[("U", {"id": "1", "name": "a"})], keys=("id",), options=NAMED, table="d.t",
         at_ms=None, good=b'{"data": [{"id": 9}], "type": "INSERT"}'),
    *(
        Case(f"it happened at es, else at ts, and zero is unknown: {members}", message(**members),
             rows=[A], at_ms=at_ms)
        for members, at_ms in (
            ({"es": 5, "ts": 9}, 5), ({"es": 0, "ts": 9}, 9), ({"es": None, "ts": 9}, 9),
            ({"es": "7"}, 7), ({"es": 0, "ts": 0}, None), ({"es": None, "ts": None}, None),
        )
    ),
]  # fmt: skip

KEYS = [
    Case("a changed key: the old row ends first", update([row("2")], [{"id": "1"}]),
         rows=[end(1), upsert(2, "a", 1)], before={"id": 1, "name": "a", "price": PRICE}),
    Case("only the part of the key that changed is in old",
         update([{"a": "1", "b": "x", "v": "5"}], [{"b": "w"}], types=AB, keys=["a", "b"]),
         rows=[("D", {"a": 1, "b": "w"}),
               ("U", {"a": 1, "b": "x", "v": 5}, {"a": 1, "b": "w"})],
         good=message(data=[{"a": "9", "b": "z"}], types=AB, keys=["a", "b"])),
    Case("a part of the key that only old holds did not change",
         update([{"b": "3", "v": "7"}], [{"a": "1", "b": "2"}], types=AB, keys=["a", "b"]),
         rows=[("D", {"a": 1, "b": "2"}),
               ("U", {"a": 1, "b": "3", "v": 7}, {"a": 1, "b": "2"})],
         good=message(data=[{"a": "9", "b": "z"}], types=AB, keys=["a", "b"])),
    Case("a key column in old with its value in data did not change",
         update([row("1"), row("3")], [{"id": "1", "name": "z"}, {"id": "2", "name": "a"}]),
         rows=[A, end(2), upsert(3, "a", 2)]),
    Case("rows beyond the end of old changed no key",
         update([row("2"), row("3")], [{"id": "1"}]),
         rows=[end(1), upsert(2, "a", 1), upsert(3)]),
    Case("a changed key's row names where the rest of it is",
         [message(data=[row("5")]), update([{"id": "2", "name": "b"}], [{"id": "1"}])],
         rows=[upsert(5), end(1), ("U", {"id": 2, "name": "b"}, {"id": 1})]),
    Case("InLong calls old updateBefore",
         update([row("2")], updateBefore=[row("9")], drop=["old"]),
         rows=[end(9), upsert(2, "a", 9)], before={"id": 9, "name": "a", "price": PRICE}),
    Case("old may hold the whole row with typed values, as Flink CDC writes it",
         update([{"id": 2, "name": "a"}], [{"id": 1, "name": "a"}],
                types={"id": "int", "name": "text"}, drop=["sql", "es", "isDdl"]),
         rows=[end(1), ("U", {"id": 2, "name": "a"}, {"id": 1})]),
    *(
        Case(f"a key may be called {key!r}",
             update([{key: "2"}], [{key: "1"}], types={key: "int"}, keys=[key]),
             rows=[("D", {key: 1}), ("U", {key: 2}, {key: 1})],
             good=message(data=[{key: "9"}], types={key: "int"}, keys=[key]))
        for key in ("a b", 'q"q', "b\\b", "data", "鍵", ROW_ID)
    ),
    *(
        Case(f"without a key ({keys}) it is a changelog", message(keys=keys),
             changelog=[("I", A[1])], good=message(keys=None))
        for keys in (None, [])
    ),
    Case("a configured key may hold nulls", message(data=[row(name=None)]), keys=("id", "name"),
         rows=[upsert(1, None)], good=message(data=[row("9")])),
    Case("a configured key wins over those of messages",
         [message(keys=["name"]), message(keys=None)], keys=("id",), rows=[A, A]),
    Case("the order of a key alone is no change", rows=[A, A], good=message(keys=["id", "name"]),
         messages=[message(keys=["id", "name"]), message(keys=["name", "id"])]),
    *(
        unfit(f"{kind} without its key", message(kind, [{"name": "a", "price": "1"}]),
              "key column id is missing")
        for kind in ("INSERT", "UPDATE", "DELETE")
    ),
    unfit("a null key", message(data=[row("2"), row(None)]), "key column id is null"),
    unfit("a key that the table does not have", message(keys=["code"]),
          "key column code is missing", good=message(data=[{"code": "1"}], keys=["code"])),
    unfit("a configured key that the table does not have", message(),
          "key column code is missing", keys=("code",), good=message(data=[{"code": "1"}])),
    *(
        unfit(f"a key that changes: {says}", [message(keys=first), message(keys=keys)],
              f"the key was {says}", good=message(keys=first))
        for first, keys, says in (
            (["id"], ["id", "name"], "(id) and is now (id, name)"),
            (["id"], None, "(id) and is now none"),
            (None, ["id"], "none and is now (id)"),
        )
    ),
    unfit("a key that is left out, and comes midway",
          [message(drop=["pkNames"]), message()], "the key was none and is now (id)",
          good=message(drop=["pkNames"])),
]  # fmt: skip

SHAPES = [
    Case("a column that is added was not carried before",
         [message(), message(data=[{"id": "2", "extra": "5", "name": "b", "price": "1.5"}],
                             types={"id": "int", "extra": "int"} | TYPES), message()],
         rows=[A, ("U", {"id": 2, "name": "b", "price": PRICE, "extra": 5}), A],
         columns={**COLUMNS, "extra": pa.int32()}),
    Case("a column that no type names is text", [message(), message(data=[row() | {"n": "5"}])],
         rows=[A, ("U", A[1] | {"n": "5"})]),
    Case("a type that widens",
         [message(), message(data=[row(str(2**40))], types=TYPES | {"id": "bigint"})],
         rows=[A, upsert(2**40)], columns={**COLUMNS, "id": pa.int64()}),
    Case("a longer text is the same type", [message(), message(types=TYPES | {"name": "text"})],
         rows=[A, A]),
    Case("types in another order", [message(), message(types=dict(reversed(TYPES.items())))],
         rows=[A, A], columns=COLUMNS),
    Case("each minimal image may list other columns with their types: all are of one table",
         [update([{"id": str(n)} | dict.fromkeys(shape, str(n))], [{}],
                 types={"id": "int"} | dict.fromkeys(shape, "int"))
          for n, shape in enumerate(IMAGES * 2)],
         rows=[("U", {"id": n} | dict.fromkeys(shape, n)) for n, shape in enumerate(IMAGES * 2)]),
    Case("names may be anything that a database takes",
         update([{"id": "1"} | {name: str(n) for n, name in enumerate(ODD)}],
                [dict.fromkeys(ODD, "0")], types={"id": "int"} | dict.fromkeys(ODD, "int")),
         rows=[("U", {"id": 1} | {name: n for n, name in enumerate(ODD)})]),
    *(
        Case(f"JSON's {value!r} in a column of type {kind}",
             message(data=[{"id": 1, "v": value}], types={"id": "int"} | declared),
             rows=[("U", {"id": 1, "v": kept})])
        for kind, declared, value, kept in (
            (kind, {} if kind is None else {"v": kind}, value, kept)
            for kind, value, kept in (
                ("tinyint(1)", True, 1), ("tinyint(1)", False, 0), ("varchar(9)", True, "true"),
                (None, 12.50, "12.5"), ("json", {"a": [1, None]}, '{"a": [1, null]}'),
                ("json", [], "[]"), ("varchar(9)", None, None),
            )
        )
    ),
    Case("without any types all columns are text", message(types=None),
         rows=[("U", {"id": "1", "name": "a", "price": "1.50"})], good=message(types=None)),
    Case("types that are left out stay what they are",
         [message(), message(types=None), message(drop=["mysqlType"])], rows=[A, A, A]),
    Case("dialects add members of their own",
         message(opType="INSERT", batchId=0, updateBefore=None, _tidb={"commitTs": 5}, gtid="x"),
         rows=[A]),
    *(
        Case(f"sqlType {number!r} says nothing", message(sqlType={"name": number}), rows=[A])
        for number in ({}, [], {"a": 1}, "x", 2004.0, None, True)
    ),
    *(
        unfit(f"a type that can't become another: {later}",
              [message(), message(types=TYPES | later)], said, good=message())
        for later, said in (
            ({"id": "varchar(10)"}, "id: the type int(11) (int32) can't become varchar(10)"),
            ({"id": "bigint unsigned"}, "id: the type int(11) (int32) can't become bigint unsigned "
                                        "(decimal128(20, 0))"),
            ({"price": "decimal(10,4)"}, "price: the type decimal(10,2)"),
        )
    ),
    unfit("numbers of types that are none: they say how texts are spelled",
          message(data=[{"id": "1", "v": BYTES}], types={"id": "INT", "v": "JSON"}, sqlType=[4]),
          "sqlType is not an object"),
    unfit("names that differ by case only",
          message(data=[{"id": "1", "ID": "2"}], types={"id": "int", "ID": "int"}),
          "the column names id and ID differ by case only"),
    unfit("a name of binlogd's", message(data=[{"id": "1", "__BINLOGD_x": "2"}]),
          "the column name __BINLOGD_x"),
    unfit("a name of a changelog's", message(data=[{"id": "1", "_Offset": "2"}]),
          "the column name _Offset", mode=Mode.APPEND),
    unfit("the same without a key", message(data=[{"id": "1", "_Offset": "2"}], keys=None),
          "the column name _Offset", good=message(keys=None)),
    Case("a table by key has no such columns", message(data=[{"id": "1", "_offset": "2"}]),
         rows=[("U", {"id": 1, "_offset": "2"})]),
    unfit("a document where a number should be", message(data=[{"id": [1]}], types={"id": "int"}),
          "id: '[1]' is not an int"),
    Case("sharded tables in one target: an error names the one it came from",
         message(data=[{"id": "x", "name": "a", "price": "1"}], table="orders_1"),
         unfit="shop.orders_1: id: 'x' is not an int(11)", table="shop.orders_1"),
    unfit("a zero date in a key: all would be one key",
          message(data=[{"day": "0000-00-00"}], types={"day": "date"}, keys=["day"]),
          "day: '0000-00-00' is not a date",
          good=message(data=[{"day": "2024-01-01"}], types={"day": "date"}, keys=["day"])),
]  # fmt: skip

CANAL_JSON = FormatCases(
    "canal-json",
    "shop.orders",
    message(data=[{"id": "99"}], types={"id": "int"}),
    [*ROWS, *KEYS, *SHAPES, *REFUSED, *TICDC, *sent_bytes(json_message), *values.CASES],
)

"""GoldenGate's messages: rows by their images, key changes, truncation, refusals."""

from __future__ import annotations

from typing import Any

from changes.model.model import Ddl, FormatOptions, TableName, TruncateTable
from tests.changes.formats.cases import Case, FormatCases
from tests.changes.formats.json_messages import Number, ogg

ROW = {"id": 1, "v": "x"}
AMSTERDAM = FormatOptions(time_zone="Europe/Amsterdam")
NO_KEY: dict[str, Any] = {"primary_keys": None}


def at(op_ts: str | None, at_ms: int | None, says: str) -> Case:
    """A row of an Oracle in Amsterdam, and when that was."""
    message = ogg("I", {"id": 1}, op_ts=op_ts)
    return Case(says, message, rows=[("U", {"id": "1"})], options=AMSTERDAM, at_ms=at_ms)


def bad(says: str, message: bytes, reason: str) -> Case:
    return Case(says, message, unreadable=reason)


OGG = FormatCases(
    "ogg-json",
    "SHOP.ORDERS",
    ogg("I", {"id": 99}),
    [
        Case(
            "an insert has its row after, an update both, a delete before",
            [
                ogg("I", {"id": 1, "v": Number("1.50")}),
                ogg("U", {"id": 1, "v": None}, {"id": 1, "v": Number("1.50")}),
                ogg("D", None, {"id": 1, "v": None}),
            ],
            rows=[
                ("U", {"id": "1", "v": "1.50"}),
                ("U", {"id": "1", "v": None}),
                ("D", {"id": "1"}),
            ],
        ),
        Case(
            "an image that is null is one that is not there",
            ogg("D", None, {"id": 1})[:-1] + b',"after":null}',
            rows=[("D", {"id": "1"})],
        ),
        *(
            Case(
                f"another key after than before ({op}): the old row ends, the new has its values",
                ogg(op, {"id": 2, "v": "x"}, ROW),
                rows=[("D", {"id": "1"}), ("U", {"id": "2", "v": "x"}, {"id": "1"})],
                before={"id": 1, "v": "x"},
            )
            for op in ("U", "PK")
        ),
        Case(
            "a column that a compressed update lacks keeps its value",
            [ogg("I", {"id": 1, "a": 1}), ogg("U", {"id": 1}, {"id": 1, "a": 1})],
            rows=[("U", {"id": "1", "a": "1"}), ("U", {"id": "1"})],
        ),
        Case(
            "a delete needs the key alone",
            [ogg("I", {"id": 1, "a": 1}), ogg("D", None, {"id": 1})],
            rows=[("U", {"id": "1", "a": "1"}), ("D", {"id": "1"})],
        ),
        Case(
            "without a key each change is a row: after for I and U, before for D",
            [
                ogg("I", {"a": 1}, **NO_KEY),
                ogg("U", {"a": 2}, {"a": 1}, **NO_KEY),
                ogg("D", None, {"a": 2}, **NO_KEY),
            ],
            changelog=[("I", {"a": "1"}), ("U", {"a": "2"}), ("D", {"a": "2"})],
            good=ogg("I", {"a": 9}, **NO_KEY),
        ),
        Case(
            "T is a statement: no row is left",
            ogg("T"),
            statements=[
                Ddl(TableName("SHOP", "ORDERS"), "TRUNCATE TABLE SHOP.ORDERS", (TruncateTable(),))
            ],
            at_ms=1589384406000,
        ),
        *(
            Case(f"{name} is a table of a schema", ogg("I", {"id": 1}, table=name),
                 rows=[("U", {"id": "1"})], table=name)
            for name in ("S.T", "PDB.S.T")
        ),
        Case(
            "a table without a schema is in the configured one",
            ogg("I", {"id": 1}, table="T"),
            rows=[("U", {"id": "1"})],
            table="S.T",
            options=FormatOptions(extra={"default_database": "S"}),
        ),
        bad(
            "a table without a schema needs a configured one",
            ogg("I", {"id": 1}, table="T"),
            "table 'T': SCHEMA.TABLE is required",
        ),
        Case("a tombstone has nothing to apply", None, nothing=True),
        Case("an empty value has nothing to apply", b"", nothing=True),
        at("2020-05-13 15:40:06.123456", 1589377206123, "a time is in the configured zone"),
        at("2020-05-13T15:40:06.000000", 1589377206000, "a time with a T is, too"),
        at("2020-05-13T15:40:06Z", 1589384406000, "a time that names its zone is in that"),
        at("", None, "an empty time is none"),
        at(None, None, "a row may have no time"),
        bad("not JSON", b"[", "not a GoldenGate message"),
        bad("an unknown op_type", b'{"table":"S.T","op_type":"X"}', "of unknown op_type 'X'"),
        bad("no op_type", b'{"table":"S.T"}', "without op_type"),
        *(
            Case(f"{op} needs {image}", ogg(op),
                 unfit=f"SHOP.ORDERS: a message of op_type {op} without {image}")
            for op, image in (("I", "after"), ("U", "after"), ("D", "before"))
        ),
        Case("a refusal names the table as it is configured", ogg("I", table="T"),
             unfit="S.T: a message of op_type I without after", table="S.T",
             options=FormatOptions(extra={"default_database": "S"})),
        Case("bytes that are no text", ogg("I", ROW).replace(b'"x"', b'"\xff"'),
             unfit="SHOP.ORDERS: a value is not valid text"),
        Case("an image that is no object", ogg("I", 7),
             unfit="SHOP.ORDERS: not a GoldenGate message"),
        Case("keys that are no list", ogg("I", {"id": 1}, primary_keys=7),
             unfit="SHOP.ORDERS: primary_keys"),
    ],
)  # fmt: skip

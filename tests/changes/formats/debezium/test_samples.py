"""The Debezium records that other projects test with, against what those projects expect."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import RowChange, Statement, pack, unpack
from changes.model.model import OP, BadMessage, BadRecord, FormatOptions, Kind, Mode, TableName
from changes.routes.fold import fold
from tests.changes import conformance
from tests.changes.formats import samples
from tests.changes.formats.debezium.mutated import damaged, survive

DEBEZIUM = DebeziumJson(FormatOptions())
ALL_TYPES = "debezium/table/schema/alltype"
READ_OTHERWISE = {
    "geometry": "Paimon makes GeoJSON of it; here it is SRID and WKB, as MySQL stores it",
    "bit": "Paimon keeps its bytes; here it is their number",
}
"""What we read otherwise on purpose, and what the other project has."""


def records(path: Path) -> list[bytes]:
    """The file's records: a document, or those lines that are JSON; they have no keys."""
    text = path.read_bytes()
    lines = [text] if path.suffix == ".json" else text.splitlines()
    return [pack(None, line) for line in lines if line.strip().startswith(b"{")]


NAME = "debezium-json"


def told(case: str) -> Mapping[str, Any]:
    """What Paimon expects of a case."""
    whole = json.loads((conformance.folder() / "paimon/expectations.json").read_text())
    found: Mapping[str, Any] = {each["case"]: each for each in whole["cases"]}[case]
    return found


def steps() -> list[Any]:
    """Paimon's cases that tell tables: the files before each of their steps, and what is then."""
    root = conformance.present()
    if root is None:
        return [conformance.case("", 0, id="no-samples", of=NAME)]
    whole = json.loads((root / "paimon/expectations.json").read_text())
    return [
        conformance.case(case["case"], number, id=f"{case['case']}-{number + 1}", of=NAME)
        for case in whole["cases"]
        if case["case"].startswith("debezium/")
        for number in range(len(case["steps"]))
    ]


PATTERNS = ("debezium-docs/*.json", "flink/debezium*.txt", "paimon/debezium/**/*.txt")
EVERY_FILE = conformance.cases(*PATTERNS)
REFUSED = {
    "mysql_0149_schema_change_key.json": "no default_database",
    "mysql_0914_op_c.json": "names no table",
    "mysql_1046_key.json": "a record key in the place of a value",
    "pg_0499_op_c.json": "names no table",
    "pg_0637_key.json": "a record key in the place of a value",
    "debezium-postgres-data-replica-identity.txt": "a deleted row without",
}
"""Files whose last record can't be applied, and what is said of it."""

SHORTHAND = "the documentation leaves out source, so the record names no table: refused without one"
OTHERWISE = {"mysql_0914_op_c.json": SHORTHAND, "pg_0499_op_c.json": SHORTHAND}


@pytest.mark.parametrize("path", conformance.cases(*PATTERNS, of=NAME, otherwise=OTHERWISE))
def test_every_record_is_understood(path: Path) -> None:
    """None is refused, but what can't be applied: that is told why."""
    for place, value in enumerate(found := records(path)):
        last = place + 1 == len(found)
        if last and path.name in REFUSED:
            with pytest.raises(BadMessage, match=REFUSED[path.name]):
                DEBEZIUM.explain(value)
        else:
            head, changes = DEBEZIUM.peek(value), DEBEZIUM.explain(value)
            assert (head.kind is Kind.NOTHING) == (not changes)
            assert not any(isinstance(c, RowChange) and c.misfit for c in changes)


IDENTITY = "debezium-postgres-data-replica-identity.txt"
NO_ROWS = ("_key.", "schema_change.", "_tx_", "op_m.", "op_t.")
WITH_ROWS = [
    case
    for case in conformance.cases(*PATTERNS, of=NAME)
    if not any(part in str(case.id) for part in NO_ROWS)
]


@pytest.mark.parametrize("path", WITH_ROWS)
def test_rows_are_what_the_messages_say(path: Path) -> None:
    """Their columns are those of the JSON, and without a schema the values, digit by digit."""
    named = {"default_database": "d", "default_table": "t"}
    format_ = DebeziumJson(FormatOptions(extra=named))
    found = records(path)[: -1 if path.name == IDENTITY else None]
    assert found
    for value in found:
        told = json.loads(unpack(value).value or b"", parse_float=Decimal)
        (change,) = format_.explain(value)
        assert isinstance(change, RowChange)
        payload, gone = told.get("payload", told), change.op == "D"
        image, wanted = (change.before if gone else change.after), payload[NOW[gone]]
        assert image is not None
        assert image.keys() == wanted.keys()
        if told.get("schema") is None:
            assert {name: samples.shown(each) for name, each in image.items()} == {
                name: samples.plain(each) for name, each in wanted.items()
            }


NOW = {True: "before", False: "after"}
"""The image that a message shows of a row: whether it is gone."""


@pytest.mark.parametrize(
    ("key", "row", "column"),
    [
        ("mysql_1046_key.json", "mysql_1442_op_u.json", "id"),
        ("pg_0637_key.json", "pg_1045_op_u.json", "id"),
    ],
)
@pytest.mark.conformance(NAME)
def test_documented_keys(key: str, row: str, column: str) -> None:
    """As a record's key the documentation's example tells the table's key."""
    docs = conformance.folder() / "debezium-docs"
    (change,) = DEBEZIUM.explain(pack((docs / key).read_bytes(), (docs / row).read_bytes()))
    assert isinstance(change, RowChange)
    assert list(change.key) == [column]


@pytest.mark.conformance(NAME)
def test_documented_key_of_a_schema_change() -> None:
    """The key of a statement's record says nothing more."""
    docs = conformance.folder() / "debezium-docs"
    key = (docs / "mysql_0149_schema_change_key.json").read_bytes()
    value = pack(key, (docs / "mysql_0208_schema_change.json").read_bytes())
    assert DEBEZIUM.ddl(value) == DEBEZIUM.ddl(pack(None, unpack(value).value))


@pytest.mark.parametrize("path", conformance.cases("debezium-docs/*_tx_*.json", of=NAME))
def test_documented_transactions(path: Path) -> None:
    """Where a transaction begins and ends there is nothing to apply."""
    (value,) = records(path)
    assert DEBEZIUM.peek(value).kind is Kind.NOTHING
    assert DEBEZIUM.explain(value) == ()


@pytest.mark.parametrize("path", conformance.cases("debezium-docs/*_op_*.json", of=NAME))
def test_documented_ops(path: Path) -> None:
    """Each example of the documentation is the operation that its name says."""
    named = {"default_database": "d", "default_table": "t"}
    (value,) = records(path)
    found = DebeziumJson(FormatOptions(extra=named)).explain(value)
    letters = {"c": "I", "u": "U", "d": "D"}
    op = path.stem[-1]
    if op == "m":
        assert found == ()
    elif op == "t":
        assert [type(each) for each in found] == [Statement]
    else:
        assert [each.op for each in found if isinstance(each, RowChange)] == [letters[op]]


@pytest.mark.conformance(NAME)
def test_documented_schema_change() -> None:
    """The statement of the documentation's example adds a column."""
    (value,) = records(conformance.folder() / "debezium-docs/mysql_0208_schema_change.json")
    (ddl,) = DEBEZIUM.ddl(value)
    assert (str(ddl.table), len(ddl.steps), ddl.refused) == ("inventory.customers", 1, None)


FLINK = [
    case
    for case in conformance.cases("flink/debezium*.txt", of=NAME)
    if "replica-identity" not in str(case.id)
]


def expected(path: Path) -> Mapping[str, Any]:
    found = conformance.expectations(path)
    return found | {"columns": [name for name, _ in found["columns"]]}


def as_float32(row: Sequence[object]) -> list[object]:
    """Numbers in 32 bits, as Flink's test has them; text of numbers likewise."""
    *others, weight = row
    number = None if weight is None else float(str(weight))
    return [*map(str, others), pa.scalar(number, pa.float32()).as_py()]


def net_rows(values: Sequence[bytes], keys: tuple[str, ...], names: Sequence[str]) -> list[Any]:
    changes = DEBEZIUM.table_decoder(Mode.UPSERT, keys).decode(0, range(len(values)), values)
    assert changes is not None
    found = fold(changes.table, keys).to_pylist()
    return [[row.get(name) for name in names] for row in found if row[OP] == "U"]


@pytest.mark.parametrize("path", FLINK)
def test_flink_changelogs(path: Path) -> None:
    """Each change as people read it, before and after, in the order that Flink expects."""
    wanted, found = expected(path), []
    for value in records(path):
        for change in DEBEZIUM.explain(value):
            assert isinstance(change, RowChange)
            for image, mark in ((change.before, "-"), (change.after, "+")):
                if image is not None:
                    row = [image[name] for name in wanted["columns"]]
                    found.append([mark + change.op, *as_float32(row)])
    assert found == [[sign, *as_float32(row)] for sign, *row in wanted["changelog"]]


@pytest.mark.parametrize("path", FLINK)
def test_flink_final_rows(path: Path) -> None:
    """What remains at the end."""
    wanted = expected(path)
    found = net_rows(records(path), ("id",), wanted["columns"])
    assert sorted(map(as_float32, found)) == sorted(map(as_float32, wanted["final_rows"]))


@pytest.mark.parametrize(
    "path",
    conformance.cases(
        f"flink/{IDENTITY}",
        of=NAME,
        otherwise={
            IDENTITY: "Flink stops at the first update without before; an upsert needs none"
        },
    ),
)
def test_flink_replica_identity(path: Path) -> None:
    """Rows by a configured key; the delete that tells none is refused, not passed over."""
    wanted, values = expected(path), records(path)
    rows = wanted["upsert_consumer_rows_before_last_line"]
    found = net_rows(values[:-1], ("id",), wanted["columns"])
    assert sorted(map(as_float32, found)) == sorted(map(as_float32, rows))
    with pytest.raises(BadRecord, match="key column id is missing in a deleted row") as error:
        net_rows(values, ("id",), wanted["columns"])
    assert error.value.index == len(values) - 1


TOLD_FIRST = ("debezium-data-schema-exclude.txt", "debezium-postgres-data-schema-exclude.txt")


@pytest.mark.parametrize(
    "path", [c for c in FLINK if str(c.id).removeprefix("flink/") in (*TOLD_FIRST, "no-samples")]
)
def test_flink_first_moment_and_table(path: Path) -> None:
    """A snapshot's row of an old connector has no time of its own: then when it was sent."""
    told = expected(path)["first_message_metadata"]
    (first,) = DEBEZIUM.explain(records(path)[0])
    assert first.ts_ms == (told["source_ts_ms"] or told["ingestion_ts_ms"])
    assert first.table == TableName(told["schema"] or told["database"], told["table"])


def before_step(case: Mapping[str, Any], number: int) -> Iterator[bytes]:
    for step in case["steps"][: number + 1]:
        for name in step["after_files"]:
            if name.startswith("<tombstone"):
                yield pack(None, None)
            else:
                yield from records(conformance.folder() / "paimon" / name)


def by_table(values: Sequence[bytes]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for value, head in zip(values, DEBEZIUM.heads(values), strict=True):
        if head.table is not None:
            found.setdefault(head.table.table, []).append(value)
    return found


@pytest.mark.parametrize(("case", "number"), steps())
def test_paimon_tables(case: str, number: int) -> None:
    """Rows and columns after each step are Paimon's: text where there is no schema."""
    whole = told(case)
    step, tables = whole["steps"][number], by_table(list(before_step(whole, number)))
    if "expect_error" in step:
        (values,) = tables.values()
        with pytest.raises(BadRecord, match=r"age: the type int32 \(int64\) can't become string"):
            net_rows(values, tuple(whole["primary_key"]), [])
        return
    for name, wanted in step.get("tables", {None: step}).items():
        values = tables[name] if name else next(iter(tables.values()))
        names = [column["name"] for column in wanted["columns"]]
        if name is None:
            found = net_rows(values, tuple(whole["primary_key"]), names)
        else:
            decoder = DEBEZIUM.table_decoder(Mode.UPSERT, None)
            changes = decoder.decode(0, range(len(values)), values)
            assert changes is not None
            assert changes.mode is Mode.APPEND
            found = [[row[name] for name in names] for row in changes.table.to_pylist()]
        assert sorted(map(str, found)) == sorted(map(str, wanted["rows_unordered"]))


@pytest.mark.conformance(NAME)
def test_paimon_nested_and_deleted() -> None:
    """A JSON object stays JSON; a delete alone tells the columns."""
    root = conformance.folder() / "paimon/debezium/table"
    (nested,) = DEBEZIUM.explain(records(root / "nestedtype/debezium-data-1.txt")[0])
    assert isinstance(nested, RowChange)
    assert nested.after is not None
    assert nested.after["row"] == '{"row_key":"value"}'
    values = records(root / "schema/schemaevolution/debezium-data-with-delete.txt")
    changes = DEBEZIUM.table_decoder(Mode.UPSERT, None).decode(0, [0], values)
    assert changes is not None
    names = ["id", "name", "description", "weight"]
    assert [(c.name, c.type) for c in changes.schema.columns] == [(n, pa.string()) for n in names]


def shown(value: object) -> object:
    """A value as Paimon's expectations write it."""
    match value:
        case bytes():
            return {"hex": value.hex()}
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case _:
            return value


def all_types() -> list[Any]:
    """The columns of Paimon's table of all types, each a case."""
    root = conformance.present()
    if root is None:
        return [conformance.case(0, id="no-samples", of=NAME)]
    whole = json.loads((root / "paimon/expectations.json").read_text())["alltype_debezium"]
    return [
        conformance.case(
            n,
            id=f"{whole['file']}-{each['name']}",
            of=NAME,
            otherwise=READ_OTHERWISE.get(kind_of(each["type"], whole["rows"][0][n])),
        )
        for n, each in enumerate(whole["columns"])
    ]


def kind_of(column: str, wanted: object) -> str:
    """Of which values Paimon makes something else."""
    if isinstance(wanted, str) and '"srid"' in wanted:
        return "geometry"
    return "bit" if isinstance(wanted, dict) and column == "BINARY(8)" else ""


@pytest.mark.parametrize("number", all_types())
def test_paimon_types(number: int) -> None:
    """The value of a column of each MySQL type is Paimon's, or what we say we make of it."""
    root = conformance.folder() / "paimon"
    whole = json.loads((root / "expectations.json").read_text())["alltype_debezium"]
    name, wanted = whole["columns"][number]["name"], whole["rows"][0][number]
    values = records(root / whole["file"])
    keys = tuple(whole["primary_key"])
    changes = DEBEZIUM.table_decoder(Mode.UPSERT, keys).decode(0, [0], values)
    assert changes is not None
    found = changes.table[name][0].as_py()
    kind = kind_of(whole["columns"][number]["type"], wanted)
    if kind == "geometry":
        assert found[:5] == b"\0\0\0\0\1"
    elif kind == "bit":
        assert f"{int(found):016x}" == wanted["hex"]
    elif isinstance(wanted, str) and isinstance(found, datetime | Decimal | str):
        assert same_number(str(shown(found)), wanted)
    elif isinstance(found, Decimal):
        assert found == wanted
    else:
        assert shown(found) == wanted


def same_number(found: str, wanted: str) -> bool:
    """Text that is equal, but for zeros at the end of a fraction."""
    cut: Callable[[str], str] = lambda t: t.rstrip("0").rstrip(".") if "." in t else t  # noqa: E731
    return cut(found) == cut(wanted) or found == wanted


@pytest.mark.parametrize("path", EVERY_FILE)
def test_damaged_samples(path: Path) -> None:
    """Of real records, too, some are refused and some read when they are damaged: no more."""
    conformance.folder()
    values = [unpack(value).value or b"" for value in records(path)]
    seen = Counter(
        survive(DebeziumJson(FormatOptions()), pack(None, damaged(values, seed)), Mode.UPSERT)
        for seed in range(20)
    )
    assert seen["bad message"] + seen["bad record"]
    assert seen.total() == 20


def test_the_table_is_the_envelopes() -> None:
    """PostgreSQL's is named by its schema: a connector has one database."""
    path = conformance.folder() / "flink/debezium-postgres-data-schema-include.txt"
    assert DEBEZIUM.peek(records(path)[0]).table == TableName("inventory", "products")

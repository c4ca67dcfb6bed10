"""The Canal files that other projects test with, against what those projects expect."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import RowChange, Statement
from changes.model.model import OP, BadRecord, FormatOptions, Kind, Mode, TableName
from changes.routes.fold import fold
from tests.changes import conformance

CANAL = CanalJson(FormatOptions())


def lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if line.strip()]


def by_table(path: Path) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = defaultdict(list)
    for line in lines(path):
        head = CANAL.peek(line)
        if head.kind is Kind.ROWS:
            found[str(head.table)].append(line)
    return found


def names_of(columns: list[Any]) -> list[str]:
    """Columns come as [name, type], as "name type" or as a name."""
    return [c[0] if isinstance(c, list) else c.split()[0] for c in columns]


def as_expected(value: object, column: pa.DataType | None = None) -> object:
    return value.isoformat() if isinstance(value, date) else value


def as_float32(value: object) -> object:
    return pa.scalar(value, pa.float32()).as_py() if isinstance(value, float) else value


def final_rows(values: list[bytes], columns: list[str]) -> list[list[object]]:
    changes = CANAL.table_decoder(Mode.UPSERT, None).decode(0, range(len(values)), values)
    assert changes is not None
    rows = fold(changes.table, changes.schema.keys).to_pylist()
    return [[as_expected(row[name]) for name in columns] for row in rows if row[OP] == "U"]


def sorted_rows(rows: list[list[Any]]) -> list[list[object]]:
    return sorted([as_float32(value) for value in row] for row in rows)


FILES = conformance.cases(*conformance.CANAL, of="canal-json")
FLINK = conformance.cases("flink/canal*.txt", of="canal-json")


@pytest.mark.parametrize("path", FILES)
def test_final_rows(path: Path) -> None:
    """What remains at the end of a file is what its project expects, for every table."""
    expected, tables = conformance.expectations(path), by_table(path)
    name = expected.get("source_table") or expected["table"]
    others = expected.get("other_tables", {}).items()
    wanted = {name: expected} | {other: told for other, told in others if "final_rows" in told}
    for table, told in wanted.items():
        rows = final_rows(tables[table], names_of(told["columns"]))
        assert sorted_rows(rows) == sorted_rows(told["final_rows"]), table


@pytest.mark.parametrize("path", FLINK)
def test_changelogs(path: Path) -> None:
    """Each change as people read it, before and after, in the order that its project expects."""
    expected = conformance.expectations(path)
    columns, told = names_of(expected["columns"]), []
    for line in by_table(path)[expected["source_table"]]:
        for change in CANAL.explain(line):
            assert isinstance(change, RowChange)
            for image, mark in ((change.before, "-"), (change.after, "+")):
                if image is not None:
                    sign = "U" if change.op == "U" else change.op
                    told.append([mark + sign, *(image[name] for name in columns)])
    assert told == expected["changelog"]


@pytest.mark.parametrize("path", FILES)
def test_statements(path: Path) -> None:
    """The DDL messages of a file are statements, no rows, and none is refused."""
    ddl = [line for line in lines(path) if CANAL.peek(line).kind is Kind.DDL]
    assert len(ddl) == conformance.expectations(path).get("ddl_messages", 0)
    for line in ddl:
        assert all(isinstance(told, Statement) for told in CANAL.explain(line))
        assert [part.refused for part in CANAL.ddl(line)] == [None]


@pytest.mark.parametrize("path", conformance.cases("flink/canal-data.txt", of="canal-json"))
def test_first_moment(path: Path) -> None:
    """The moment of a change is that of its event."""
    first = CANAL.explain(lines(path)[0])[0]
    metadata = conformance.expectations(path)["first_message_metadata"]
    assert first.ts_ms == metadata["event_ts_ms"]
    assert first.table == TableName(metadata["database"], metadata["table"])


CONTRADICTED = "ids A101… in a column that mysqlType says is int(11): the lake refuses such rows"


@pytest.mark.parametrize(
    "path",
    conformance.cases(
        "flink/canal-data-filter-table.txt",
        of="canal-json",
        otherwise={"canal-data-filter-table.txt": CONTRADICTED},
    ),
)
def test_declared_type_that_the_data_contradicts(path: Path) -> None:
    """A text in a column declared int(11) is refused by the lake; people are shown it as it is."""
    values = by_table(path)["mydb.project"]
    told = conformance.expectations(path)["other_tables"]["mydb.project"]
    said = r"mydb\.project: id: 'A101' is not an int\(11\)"
    with pytest.raises(BadRecord, match=said):
        final_rows(values, ["id"])
    shown = CANAL.explain(values[0])
    assert [change.key["id"] for change in shown] == [f"A{n}" for n in range(101, 110)]
    assert all(change.misfit for change in shown)
    assert len(shown) == told["final_row_count"]


def test_absent_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the samples the tests are skipped; where CI is set they fail."""
    monkeypatch.setenv("CONFORMANCE_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        conformance.folder()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no sample messages at"):
        conformance.folder()

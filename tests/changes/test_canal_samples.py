"""The Canal files that other projects test with, read where they are at hand."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from changes.fold import fold
from changes.formats.canal_json import CanalJson
from changes.model import OP, BadRecord, FormatOptions, Kind, Mode, TableName

FOLDER = os.environ.get("CONFORMANCE_DIR")

pytestmark = pytest.mark.skipif(not FOLDER, reason="CONFORMANCE_DIR does not name the samples")

CANAL = CanalJson(FormatOptions())


def by_table(name: str) -> dict[TableName, list[bytes]]:
    found: dict[TableName, list[bytes]] = defaultdict(list)
    for line in (Path(FOLDER or "") / name).read_bytes().splitlines():
        if line.strip():
            head = CANAL.peek(line)
            if head.kind is Kind.ROWS and head.table is not None:
                found[head.table].append(line)
            elif head.kind is Kind.DDL:
                assert all(ddl.refused is None for ddl in CANAL.ddl(line))
    return found


def folded(values: list[bytes]) -> list[dict[str, object]]:
    changes = CANAL.table_decoder(Mode.UPSERT, None).decode(0, range(len(values)), values)
    assert changes is not None
    return [row for row in fold(changes.table, changes.schema.keys).to_pylist() if row[OP] == "U"]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("flink/canal-data.txt", TableName("inventory", "products2")),
        ("flink/canal-data-filter-table.txt", TableName("mydb", "product")),
    ],
)
def test_products(name: str, table: TableName) -> None:
    """The products that remain at the end of Flink's samples."""
    rows = {row["id"]: row for row in folded(by_table(name)[table])}
    assert sorted(rows) == [101, 104, 105, 106, 107, 108, 109, 110]
    assert rows[106]["description"] == "18oz carpenter hammer"
    assert rows[101]["weight"] == pytest.approx(5.17)


def test_declared_type_that_the_data_contradicts() -> None:
    """A text in a column declared int(11) is refused, not stored as something else."""
    values = by_table("flink/canal-data-filter-table.txt")[TableName("mydb", "project")]
    with pytest.raises(BadRecord, match=r"mydb\.project: id: 'A101' is not an int\(11\)"):
        folded(values)


def test_inlong() -> None:
    """InLong's dialect has typed values and other members."""
    rows = folded(by_table("inlong/canal-json-inlong-data.txt")[TableName("TEST", "TEST")])
    assert [(row["id"], row["name"]) for row in rows] == [(2, "xixi"), (1, "oooooo"), (3, "HAHA")]

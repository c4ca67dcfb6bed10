"""The files that Maxwell and Flink test with, against what they expect; a case for each file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from changes.formats.engine.format import RowChange, Statement, pack
from changes.model.model import BadMessage, Kind, Mode
from tests.changes import conformance
from tests.changes.formats import samples
from tests.changes.formats.json_messages import made

MAXWELL = "maxwell-json"
KEY = "aaaaaaaaaaaaaaaa"
"""With which Maxwell's own tests encrypt."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|([A-Za-z_][\w-]*)(?=\s*:)|.', re.DOTALL)
_OPS = {"insert": "I", "update": "U", "delete": "D", "bootstrap-insert": "I"}


def strict(text: str) -> str:
    """Relaxed JSON, whose names may stand without quotes, as JSON."""
    return "".join(f'"{m[1]}"' if m[1] else m[0] for m in _TOKEN.finditer(text))


def records(path: Path) -> Iterator[str]:
    """The messages that Maxwell has to write: JSON behind ``->``, perhaps over several lines."""
    pending = ""
    for line in path.read_text().splitlines():
        text = line.strip()
        if text.startswith("->"):
            pending = text[2:]
        elif pending:
            pending += " " + text
        if pending:
            try:
                json.loads(strict(pending))
            except ValueError:
                continue
            yield strict(pending)
            pending = ""
    assert not pending, path


@pytest.mark.parametrize("path", conformance.cases("maxwell/sql_json/*", of=MAXWELL))
def test_rows_of_maxwell(path: Path) -> None:
    """Each message is the row that its file tells, for people and as a changelog alike."""
    found = list(records(path))
    assert found, path
    format_ = made(MAXWELL)
    by_table: dict[str, list[str]] = defaultdict(list)
    for text in found:
        value, told = pack(None, text.encode()), json.loads(text, parse_float=Decimal)
        if told["type"] in ("bootstrap-start", "bootstrap-complete"):
            assert format_.peek(value).kind is Kind.NOTHING
            continue
        (change,) = format_.explain(value)
        assert isinstance(change, RowChange)
        assert change.op == _OPS[told["type"]]
        assert str(change.table) == f"{told['database']}.{told['table']}"
        image = change.before if change.op == "D" else change.after
        assert image is not None
        assert {name: samples.shown(v) for name, v in image.items()} == {
            name: samples.plain(v) for name, v in told["data"].items()
        }
        if "old" in told:
            assert change.before is not None
            assert {name: change.before[name] for name in told["old"]} == told["old"]
        by_table[str(change.table)].append(text)
    for texts in by_table.values():
        _check_changelog(texts)


def _check_changelog(texts: list[str]) -> None:
    decoder = made(MAXWELL).table_decoder(Mode.APPEND, None)
    changes = decoder.decode(0, range(len(texts)), [pack(None, t.encode()) for t in texts])
    assert changes is not None
    for row, text in zip(changes.table.to_pylist(), texts, strict=True):
        told = json.loads(text, parse_float=Decimal)
        assert row["_op"] == _OPS[told["type"]]
        for name, value in told["data"].items():
            kept = row[name]
            if isinstance(value, dict | list):
                assert json.loads(kept, parse_float=Decimal) == value
            else:
                assert kept == (None if value is None else str(value))


@pytest.mark.parametrize("path", conformance.cases("maxwell/ddl_*", of=MAXWELL))
def test_statements_of_maxwell(path: Path) -> None:
    """Every message about a statement is read as one of its table, and none is a row."""
    found = list(records(path))
    assert found, path
    for text in found:
        value, told = pack(None, text.encode()), json.loads(text)
        assert made(MAXWELL).peek(value).kind is Kind.DDL
        (statement,) = made(MAXWELL).explain(value)
        assert isinstance(statement, Statement)
        assert statement.table.database == told["database"]
        assert statement.table.table == told.get("table", "")


WHOLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "user-insert": ("I", "MyDatabase.User", {"UserID": 20, "FirstName": "Fiz", "LastName": "Buz"}),
    "user-update": ("U", "MyDatabase.User", {"FirstName": "Fiz", "backup_date": None}),
    "encrypted-user-insert": ("I", "shard_1.minimal", {"id": 1, "text_field": "hello"}),
    "encrypted-user-update": ("U", "shard_1.minimal", {}),
    "all-encrypted-user-insert": ("I", "shard_1.minimal", {}),
    "all-encrypted-user-update": ("U", "shard_1.minimal", {}),
}


@pytest.mark.parametrize("path", conformance.cases("maxwell/json/*.json", of=MAXWELL))
def test_whole_messages_of_maxwell(path: Path) -> None:
    """Complete messages, the encrypted ones by the key of Maxwell's tests."""
    value = pack(None, path.read_bytes())
    op, table, some = WHOLE[path.stem]
    (change,) = made(MAXWELL, encryption_key=KEY).explain(value)
    assert isinstance(change, RowChange)
    assert change.after is not None
    assert (change.op, str(change.table)) == (op, table)
    assert change.after.items() >= some.items()
    if "encrypted" in path.stem:
        with pytest.raises(BadMessage, match="no encryption_key is set"):
            made(MAXWELL).explain(value)


@pytest.mark.parametrize("path", conformance.cases("flink/maxwell-data.txt", of=MAXWELL))
def test_changelog_of_flink(path: Path) -> None:
    """Each change, before and after, and what remains at the end."""
    expected = conformance.expectations(path)
    values = [pack(None, line) for line in samples.lines(path)]
    told: dict[str, Any] = expected["first_message_metadata"]
    (first,) = made(MAXWELL).explain(values[0])
    assert first.ts_ms == told["ts_ms"]
    samples.check_changelog(made(MAXWELL), values, expected)
    samples.check_final_rows(made(MAXWELL), values, expected)

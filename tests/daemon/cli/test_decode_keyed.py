"""``binlogd decode`` of formats whose records have keys: how a line gives key and value."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions
from daemon.cli.__main__ import app
from daemon.cli.decode import decode_files
from daemon.cli.message_files import keyed_record
from tests.changes.formats.debezium.messages import (
    dumps,
    envelope,
    key_with_schema,
    typed,
    wrapped,
)

ROW = {"id": 1, "name": "a"}
KEY = {"id": 1}


@pytest.mark.parametrize(
    "line",
    [
        {"key": KEY, "value": envelope("c", ROW)},
        {"value": envelope("c", ROW), "key": KEY},
        {"key": dumps(KEY).decode(), "value": dumps(envelope("c", ROW)).decode()},
    ],
)
def test_a_line_with_key_and_value(line: Any) -> None:
    """It is a whole record, whether its parts stand as JSON or as text that holds it."""
    assert keyed_record(dumps(line)) == pack(dumps(KEY), dumps(envelope("c", ROW)))


def test_headers_of_a_line() -> None:
    """A third member, for those who need it."""
    line = {"key": None, "value": None, "headers": {"h": "1", "n": None}}
    assert keyed_record(dumps(line)) == pack(None, None, [("h", b"1"), ("n", None)])


def test_upsert_rows(tmp_path: Path) -> None:
    """Their table is named by options, without which nothing is read."""
    path = tmp_path / "f.jsonl"
    lines = [{"key": KEY, "value": {"name": "a"}}, {"key": KEY, "value": None}, ROW]
    path.write_bytes(b"\n".join(map(dumps, lines)))
    asked = ["decode", "--format", "upsert-json", str(path)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert "default_database: upsert-json needs it" in result.stderr
    result = CliRunner().invoke(app, [*asked, "--database", "s", "--table", "t"])
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["op"], each["key"], each["after"]) for each in shown] == [
        ("U", KEY, ROW), ("D", KEY, None),
    ]  # fmt: skip
    assert result.exit_code == 1
    assert f"{path}:3: s.t: have its writer make the key an object" in result.stderr


@pytest.mark.parametrize(
    "line",
    [
        dumps(envelope("c", ROW)),
        dumps({"key": 1, "value": 5}),
        dumps({"key": 1, "value": "text", "id": 1}),
        dumps({"key": "k", "value": "text"}),
        b"no json",
    ],
)
def test_any_other_line_is_a_value(line: bytes) -> None:
    """Also a flattened row of columns that are called key and value."""
    assert keyed_record(line) == pack(None, line)


def test_a_file_of_records(tmp_path: Path) -> None:
    """Values alone, with keys, a tombstone, bare NaN: each is a line that people can read."""
    fields = {"id": "int32", "v": "double"}
    infinite = wrapped(envelope("c", {"id": 1, "v": float("nan")}), fields)
    tombstone = {"key": key_with_schema(KEY, {"id": "int32"}), "value": None}
    file = tmp_path / "records.jsonl"
    lines = [envelope("c", ROW), {"key": KEY, "value": infinite}, tombstone, None, {"id": 1}]
    file.write_bytes(b"\n".join(map(dumps, lines)))
    out, errors = io.StringIO(), io.StringIO()
    assert not decode_files([str(file)], DebeziumJson(FormatOptions()), out, errors)
    printed = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["op"], line["key"], line["after"]) for line in printed] == [
        ("I", {}, ROW), ("I", KEY, {"id": 1, "v": "NaN"}), ("D", KEY, None),
    ]  # fmt: skip
    assert errors.getvalue().startswith(f"{file}:5: neither an envelope of Debezium's")


def test_typed_helper_is_a_record() -> None:
    """What the tests build is what a line becomes."""
    value = wrapped(envelope("c", ROW), {"id": "int32", "name": "string"})
    key = key_with_schema(KEY, {"id": "int32"})
    line = dumps({"key": key, "value": value})
    assert keyed_record(line) == typed("c", {"id": "int32", "name": "string"}, ROW)

"""``binlogd decode --type``: values of columns whose types no message tells."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from changes.formats import make_format
from changes.model.model import FormatOptions
from daemon.cli.__main__ import app
from daemon.cli.decode import configured_types, decode_files
from tests.changes.formats.debezium.messages import dumps, envelope
from tests.changes.formats.json_messages import ogg

ROW = {"id": "7", "price": "1.50", "at": "2026-01-02 03:04:05", "bits": "AQI=", "name": "x"}
TYPES = ["ID=bigint", "price=decimal(10,2)", "at=timestamptz", "bits=binary"]
MAXWELL = {"database": "s", "table": "t", "type": "insert", "ts": 1, "data": ROW}
CANAL = {"database": "s", "table": "t", "type": "INSERT", "isDdl": False, "data": [ROW]}
MESSAGES = {
    "maxwell-json": dumps(MAXWELL),
    "ogg-json": ogg("I", ROW),
    "canal-json": dumps(CANAL),
    "debezium-json": dumps(envelope("c", ROW)),
}


def decode(path: Path, format_: str, types: list[str]) -> tuple[bool, dict[str, object], str]:
    """Whether all was good, the row, what was said; the zone of the source is Shanghai's."""
    path.write_bytes(MESSAGES[format_])
    options = FormatOptions("Asia/Shanghai", types=configured_types(format_, types))
    out, said = io.StringIO(), io.StringIO()
    good = decode_files([str(path)], make_format(format_, options), out, said)
    return good, json.loads(out.getvalue())["after"], said.getvalue()


@pytest.mark.parametrize("format_", sorted(MESSAGES))
def test_values_are_shown_as_the_lake_keeps_them(tmp_path: Path, format_: str) -> None:
    """As with a route's types; columns that are not named stay as they come."""
    assert decode(tmp_path / "f", format_, []) == (True, ROW, "")
    zone = "2026-01-02T03:04:05Z" if format_ == "debezium-json" else "2026-01-01T19:04:05Z"
    assert decode(tmp_path / "f", format_, TYPES) == (True, ROW | {"id": 7, "at": zone}, "")


@pytest.mark.parametrize("format_", sorted(MESSAGES))
def test_a_value_that_does_not_fit_is_told(tmp_path: Path, format_: str) -> None:
    """As its target would refuse it; it is shown as it came."""
    good, row, said = decode(tmp_path / "f", format_, ["name=int"])
    assert (good, row) == (False, ROW)
    assert "name: " in said


@pytest.mark.parametrize(
    ("format_", "types", "said"),
    [
        ("auto", ["id=int"], "--type needs a --format of canal-json, debezium, debezium-json"),
        ("canal-protobuf", ["id=int"], "--type needs a --format of canal-json"),
        ("ogg-json", ["id"], "--type 'id': COLUMN=TYPE is required"),
        ("ogg-json", ["id=what"], "--type id: unknown type 'what'"),
        ("ogg-json", ["id=int", "ID=long"], "--type ID: declared twice"),
    ],
)
def test_types_that_can_not_be_met(
    tmp_path: Path, format_: str, types: list[str], said: str
) -> None:
    """They are refused, and not passed over."""
    (tmp_path / "f").write_bytes(b"{}")
    options = [option for each in types for option in ("--type", each)]
    path = str(tmp_path / "f")
    result = CliRunner().invoke(app, ["decode", "--format", format_, *options, path])
    assert result.exit_code == 2
    assert said in result.stderr

"""``binlogd decode`` without a format: it is detected from the file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from changes.formats.auto import AutoFormat
from changes.model.model import FormatOptions
from daemon.cli.decode import decode_files
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.aliyun.messages import integer, record, text
from tests.changes.formats.debezium.messages import dumps, envelope
from tests.changes.formats.json_messages import ogg
from tests.changes.formats.protobuf_records import varint

CANAL = b'{"database":"s","table":"t","type":"INSERT","isDdl":false,"data":[{"id":"1"}]}'
ENTRY = wire.canal_rows("INSERT", [wire.canal_row((), [wire.canal_column("id", "1", "int")])])
AVRO = record("INSERT", [integer(1), text("a")])


def decoded(file: Path, content: bytes, **extra: str) -> tuple[bool, list[Any], list[str]]:
    """Whether all was good, what was printed, what was said beside it."""
    file.write_bytes(content)
    out, said = io.StringIO(), io.StringIO()
    good = decode_files([str(file)], AutoFormat(FormatOptions(extra=extra)), out, said)
    printed = [json.loads(line) for line in out.getvalue().splitlines()]
    return good, printed, [line.removeprefix(f"{file}: ") for line in said.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("content", "name", "count"),
    [
        (CANAL + b"\n" + CANAL, "canal-json", 2),
        (b"\n" + ogg("I", {"id": 1}), "ogg-json", 1),
        (json.dumps(json.loads(ogg("I", {"id": 1})), indent=2).encode(), "ogg-json", 1),
        (AVRO, "aliyun-dts-avro", 1),
        (varint(len(AVRO)) + AVRO + varint(len(AVRO)) + AVRO, "aliyun-dts-avro", 2),
        (wire.canal_packet(ENTRY), "canal-protobuf", 1),
    ],
)
def test_a_file_tells_its_format(tmp_path: Path, content: bytes, name: str, count: int) -> None:
    """It is said which one, and nothing of what was looked at is lost."""
    good, printed, said = decoded(tmp_path / "f", content)
    assert (good, len(printed), said) == (True, count, [f"read as {name}"])


def test_a_file_that_begins_with_a_tombstone_tells_its_format_behind_it(tmp_path: Path) -> None:
    """What was looked at before is read as that format too: the tombstone, which names no table."""
    tombstone, row = b'{"key":{"id":1},"value":null}', dumps(envelope("c", {"id": 1}))
    good, printed, said = decoded(tmp_path / "f", tombstone + b"\n" + row)
    assert (good, len(printed), said[0]) == (False, 1, "read as debezium-json")
    assert "a tombstone whose delete is not known" in said[1]


def test_what_is_of_another_format_is_bad(tmp_path: Path) -> None:
    """The first that tells it tells it for the file."""
    good, printed, said = decoded(tmp_path / "f", b"\n".join([CANAL, ogg("I", {"id": 1}), CANAL]))
    assert (good, len(printed)) == (False, 2)
    assert said[0] == "read as canal-json"
    assert "a Canal message without a type" in said[1]


def test_a_file_that_tells_nothing_is_one_line(tmp_path: Path) -> None:
    """With what it holds, and what it may be."""
    good, printed, said = decoded(tmp_path / "f", b'{"a": 1}\nhello')
    assert (good, printed, len(said)) == (False, [], 1)
    assert said[0].startswith(
        "its format can't be detected: an object of a (1); 5 bytes that begin"
    )
    assert said[0].endswith("it may be of none that is known. --format names one")


def test_an_empty_file_is_good(tmp_path: Path) -> None:
    """As it is with any format."""
    assert decoded(tmp_path / "f", b"") == (True, [], [])


def test_a_packed_file_is_told_as_ever(tmp_path: Path) -> None:
    """It is no format of binary messages."""
    good, printed, said = decoded(tmp_path / "f", b"\x1f\x8b\x08\0\0")
    assert (good, printed, len(said)) == (False, [], 1)
    assert "is compressed by gzip" in said[0]


def test_a_format_that_the_options_rule_out_is_named(tmp_path: Path) -> None:
    """Not the next best one."""
    good, printed, said = decoded(tmp_path / "f", CANAL, positions="postgres-lsn")
    assert (good, printed, len(said)) == (False, [], 1)
    assert said[0].startswith("is of format canal-json: canal-json gives no other positions")


def test_a_file_of_a_writer_that_is_not_read(tmp_path: Path) -> None:
    """It is named, and no format is advised that would write it as rows of text."""
    metadata = {"record-type": "data", "operation": "load", "table-name": "t"}
    content = dumps({"data": {"id": 1}, "metadata": metadata})
    said = decoded(tmp_path / "f", content, default_database="d", default_table="t")
    assert said == (False, [], ["holds AWS DMS's JSON, which is not read"])

"""``binlogd decode`` of files with protobuf messages."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from changes.formats import FORMATS
from changes.model.model import FormatOptions
from daemon.cli.decode import decode_files
from tests.changes.formats import protobuf_records as wire


def printed(tmp_path: Path, name: str, content: bytes) -> tuple[list[dict[str, object]], str]:
    file = tmp_path / "messages.bin"
    file.write_bytes(content)
    out, errors = io.StringIO(), io.StringIO()
    decode_files([str(file)], FORMATS[name](FormatOptions()), out, errors)
    return [json.loads(line) for line in out.getvalue().splitlines()], errors.getvalue()


def canal(number: int) -> bytes:
    column = wire.canal_column("id", str(number), "int(11)", key=True)
    return wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), [column])]))


def entry(number: int) -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    return wire.dts_rows(0, columns, [wire.dts_row((), [wire.dts_number(3, str(number))])])


def stream(*values: bytes) -> bytes:
    return b"".join(wire.varint(len(value)) + value for value in values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("canal-protobuf", [canal(1), canal(2)]),
        ("tencent-dts", [wire.dts_message(entry(1)), wire.dts_message(entry(2))]),
    ],
)
def test_one_message_or_a_stream_of_them(tmp_path: Path, name: str, values: list[bytes]) -> None:
    """A file is a message, or several, each behind its length."""
    alone, _ = printed(tmp_path, name, values[0])
    several, errors = printed(tmp_path, name, stream(*values))
    assert [change["key"] for change in alone] == [{"id": 1}]
    assert [change["key"] for change in several] == [{"id": 1}, {"id": 2}]
    assert errors == ""


def test_parts_of_a_message_are_put_together(tmp_path: Path) -> None:
    """In a file as in the log."""
    values = [*wire.dts_parts(20, entry(1)), wire.dts_message(entry(2))]
    found, errors = printed(tmp_path, "tencent-dts", stream(*values))
    assert [change["key"] for change in found] == [{"id": 1}, {"id": 2}]
    assert errors == ""


def test_parts_that_lack_others_are_told(tmp_path: Path) -> None:
    """With their place; the rest is decoded all the same."""
    cut = wire.dts_parts(20, entry(1))
    found, errors = printed(
        tmp_path, "tencent-dts", stream(cut[0], cut[2], wire.dts_message(entry(2)))
    )
    assert [change["key"] for change in found] == [{"id": 2}]
    assert "messages.bin:1: part 0 of" in errors
    assert "messages.bin:2: part 2 of" in errors

"""Values that are no JSON, by what they begin with."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.engine.format import pack
from changes.model.model import BadMessage, BadRecord, Mode
from tests.changes.formats.json_messages import made

GOOD = {
    "canal-json": b'{"database":"d","table":"t","type":"INSERT","data":[{"id":"1"}]}',
    "maxwell-json": b'{"database":"d","table":"t","type":"insert","data":{"id":1}}',
    "ogg-json": b'{"table":"D.T","op_type":"I","after":{"id":1}}',
    "debezium-json": b'{"op":"c","after":{"id":1},"source":{"db":"d","table":"t"}}',
}
BAD = {
    "byte order mark": (b"\xef\xbb\xbf%b", "it begins with a byte order mark"),
    "schema registry": (b"\0\0\0\0\7%b", "it begins with a zero byte.*schema registry"),
    "gzip": (b"\x1f\x8b\x08%b", "it is compressed by gzip"),
    "several": (b"%b\n%b", "trailing characters"),
    "surrogate": (
        b'{"type":"\\ud800", "table":"orders"}',
        "unexpected end of (hex escape|escaped)",
    ),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(("shape", "said"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said(name: str, shape: bytes, said: str) -> None:
    """Routing, decoding and showing all refuse it, and say in words what it looks like."""
    format_: Any = made(name)
    value = shape.replace(b"%b", GOOD[name])
    value = pack(None, value) if format_.keyed else value
    with pytest.raises(BadMessage, match=said):
        format_.peek(value)
    with pytest.raises(BadMessage, match=said):
        list(format_.heads([value]))
    with pytest.raises(BadMessage, match=said):
        format_.explain(value)
    with pytest.raises(BadRecord, match=said):
        format_.table_decoder(Mode.UPSERT, ("id",)).decode(0, [0], [value])


@pytest.mark.parametrize("name", GOOD)
def test_white_space_around_is_json(name: str) -> None:
    """Also where a producer prints over several lines."""
    format_: Any = made(name)
    value = b" \r\n\t" + GOOD[name].replace(b",", b" ,\n ").replace(b":", b" : ") + b"\n "
    value = pack(None, value) if format_.keyed else value
    changes = format_.table_decoder(Mode.UPSERT, ("id",)).decode(0, [0], [value])
    assert changes.table["id"].to_pylist() == ["1"]
    assert [format_.peek(value)] == list(format_.heads([value]))


@pytest.mark.parametrize("name", GOOD)
def test_the_last_of_two_members_counts(name: str) -> None:
    """As with every common reader of JSON, in the row as around it; fast or not."""
    format_: Any = made(name)
    twice = GOOD[name].replace(b'"id":', b'"id":null,"id":')
    values = [GOOD[name], twice, GOOD[name]]
    values = [pack(None, value) if format_.keyed else value for value in values]
    changes = format_.table_decoder(Mode.UPSERT, ("id",)).decode(0, range(3), values)
    assert changes.table["id"].to_pylist() == ["1", "1", "1"]

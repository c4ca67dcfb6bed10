"""Objects and lists in a column: what is in them is looked at before a row is made of them."""

from __future__ import annotations

import pytest

from changes.formats.engine.format import pack
from changes.model.model import BadRecord, Mode
from tests.changes.formats.json_messages import made

ROWS = {
    "canal-json": b'{"database":"d","table":"t","type":"INSERT","pkNames":["id"],'
                  b'"data":[{"id":1,"j":{"a":"%b"}}]}',
    "debezium-json": b'{"op":"c","after":{"id":1,"j":{"a":"%b"}},"source":{"db":"d","table":"t"}}',
    "maxwell-json": b'{"database":"d","table":"t","type":"insert","primary_key_columns":["id"],'
                    b'"data":{"id":1,"j":{"a":"%b"}}}',
    "ogg-json": b'{"table":"D.T","op_type":"I","primary_keys":["id"],'
                b'"after":{"id":1,"j":{"a":"%b"}}}',
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("mode", Mode)
def test_one_that_is_not_utf8_is_a_bad_record(name: str, before: int, mode: Mode) -> None:
    """The one that holds it, whether it is read alone or among good ones."""
    format_ = made(name)
    good, bad = ROWS[name] % b"x", ROWS[name] % b"\xff"
    values = [*[good] * before, bad, good]
    values = [pack(b'{"id":1}', value) if format_.keyed else value for value in values]
    decoder = format_.table_decoder(mode, None)
    with pytest.raises(BadRecord) as caught:
        decoder.decode(0, range(len(values)), values)
    assert caught.value.index == before
    assert decoder.schema is None

"""An object without members in the place of a row: nobody writes it, and it stops nobody."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import BadRecord, FormatOptions, Mode
from tests.changes.formats.debezium.messages import dumps, envelope
from tests.changes.formats.json_messages import maxwell, ogg

CANAL = {"type": "INSERT", "database": "d", "table": "t", "data": [{}], "isDdl": False}
EMPTY = {
    "canal-json": dumps(CANAL),
    "debezium-json": pack(None, dumps(envelope("c", {}))),
    "maxwell-json": maxwell(data={}),
    "ogg-json": ogg("I", {}),
}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", EMPTY)
def test_a_row_without_columns_is_a_bad_record(name: str, mode: Mode) -> None:
    """Any other error would end the process that decodes, and again after each start."""
    decoder = FORMATS[name](FormatOptions()).table_decoder(mode, None)
    with pytest.raises(BadRecord, match=r"without columns|is missing"):
        decoder.decode(0, [7], [EMPTY[name]])

"""The decoder of a shaped target: what it knows after a record that it could not apply."""

from __future__ import annotations

import pytest

from changes.formats import make_format
from changes.formats.engine.format import mark_of, pack
from changes.model.model import BadRecord, FormatOptions, Mode
from changes.routes.shaping.decoder import FormatRecords, ShapedDecoder
from changes.routes.shaping.shape import Shape
from tests.shaping.rig import Change, Row, Source

ROW: Row = {"n": 1, "phone": "1", "note": "x"}
SHAPE = Shape(computed=(("c", "10 DIV n"),), rename=(("phone", "tel"),))


@pytest.mark.parametrize("name", ["canal-json", "auto"])
def test_a_bad_record_leaves_what_is_known_as_it_was(name: str) -> None:
    """The records before it are decoded again, as if it had not come."""
    format_ = make_format(name, FormatOptions())
    decoder = ShapedDecoder(
        format_.table_decoder(Mode.UPSERT, None), SHAPE, FormatRecords(format_, lambda: 0.0)
    )
    source = Source(minimal=False)
    made = [Change("I", 1, 1, ROW, ()), Change("I", 2, 2, {**ROW, "n": 0}, ())]
    values = [value for change in made if (value := source.message(change)) is not None]
    if name == "auto":
        values = [mark_of("canal-json") + pack(None, value) for value in values]
    with pytest.raises(BadRecord, match=r"computed\.c: division by zero") as bad:
        decoder.decode(0, [5, 6], values)
    assert bad.value.index == 1
    assert (decoder.schema, dict(decoder.declared_types)) == (None, {})
    changes = decoder.decode(0, [5], values[:1])
    assert changes is not None
    assert changes.table.num_rows == 1
    assert decoder.declared_types["tel"] == "varchar(20)"
    assert decoder.schema is not None
    assert [column.name for column in decoder.schema.columns] == ["id", "n", "tel", "note", "c"]

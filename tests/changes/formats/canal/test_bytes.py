"""Texts that Canal sends byte by byte: MariaDB's JSON, and types of text with a length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from changes.formats import FORMATS
from changes.model.model import BadRecord, FormatOptions, Mode
from changes.model.records import Values
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.canal.messages import message

BLOB, CLOB, VARCHAR = 2004, 2005, 12
TEXT = '{"a": "ü数"}'
BYTES = TEXT.encode().decode("latin-1")
"""As Canal 1.1.7 sends it where MariaDB 10.11 declares the column as JSON."""


def json_message(declared: str, number: int | None, text: str | None) -> bytes:
    """A row as Canal JSON."""
    return message(
        data=[{"id": "1", "v": text}],
        types={"id": "INT", "v": declared},
        sqlType=None if number is None else {"id": 4, "v": number},
    )


def packet(declared: str, number: int | None, text: str | None) -> bytes:
    """A row as Canal protobuf."""
    row = [
        wire.canal_column("id", "1", "INT", key=True, sql=4),
        wire.canal_column("v", text, declared, sql=number),
    ]
    return wire.canal_packet(wire.canal_rows("INSERT", [wire.canal_row((), row)]))


Make = Callable[[str, int | None, str | None], bytes]
for_each_format = pytest.mark.parametrize(
    ("name", "make"), [("canal-json", json_message), ("canal-protobuf", packet)], ids=["json", "pb"]
)


def decoded(name: str, values: Sequence[bytes]) -> list[object]:
    """The column v of messages, in one piece of memory or one by one."""
    decoder = FORMATS[name](FormatOptions()).table_decoder(Mode.UPSERT, None)
    found = decoder.decode(0, range(len(values)), Values.of(list(values)))
    assert found is not None
    return list(found.table["v"].to_pylist())


@for_each_format
@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("declared", ["JSON", "json", "TEXT(300)", "text(20)"])
def test_bytes_become_the_text_that_they_are(
    name: str, make: Make, declared: str, many: int
) -> None:
    """Or `ü` would be `Ã¼` in the lake, and nobody told."""
    texts = (BYTES, None, "{}", "")
    values = [make(declared, BLOB, text) for text in texts] * many
    assert decoded(name, values) == [TEXT, None, "{}", ""] * many


@for_each_format
@pytest.mark.parametrize("null", [-3, -4])
@pytest.mark.parametrize("declared", ["json", "text(300)"])
def test_a_null_that_comes_first_tells_it_too(
    name: str, make: Make, declared: str, null: int
) -> None:
    """Canal gives it the number of the bytes that it would have read."""
    values = [make(declared, null, None), make(declared, BLOB, BYTES), make(declared, null, None)]
    assert decoded(name, values) == [None, TEXT, None]
    assert decoded(name, values[1:]) == [TEXT, None]


@for_each_format
@pytest.mark.parametrize(
    ("declared", "number"),
    [("json", VARCHAR), ("json", None), ("text", CLOB), ("text", BLOB), ("varchar(9)", VARCHAR)],
)
def test_a_text_stays_what_it_is(name: str, make: Make, declared: str, number: int | None) -> None:
    """MySQL's JSON comes as a text; and BLOB beside a plain TEXT is no number of Canal's."""
    assert decoded(name, [make(declared, number, BYTES)]) == [BYTES]


@for_each_format
@pytest.mark.parametrize("text", ["ü", "数"])
def test_what_is_no_utf8_is_refused(name: str, make: Make, text: str) -> None:
    """Another character set's bytes, or another writer's text."""
    with pytest.raises(BadRecord, match=f"v: '{text}' is not a JSON"):
        decoded(name, [make("JSON", BLOB, text)])


@for_each_format
def test_people_see_the_same(name: str, make: Make) -> None:
    """``binlogd decode``."""
    (change,) = FORMATS[name](FormatOptions()).explain(make("JSON", BLOB, BYTES))
    assert change.after == {"id": 1, "v": TEXT}  # type: ignore[union-attr]


def test_numbers_of_types_that_are_none_are_refused() -> None:
    """They say how texts are spelled."""
    value = message(data=[{"id": "1", "v": BYTES}], types={"id": "INT", "v": "JSON"}, sqlType=[4])
    with pytest.raises(BadRecord, match="sqlType is not an object"):
        decoded("canal-json", [value])

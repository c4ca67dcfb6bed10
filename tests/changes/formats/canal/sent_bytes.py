"""Texts that Canal sends byte by byte: MariaDB's JSON, and types of text with a length."""

from __future__ import annotations

from collections.abc import Callable

from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.canal.messages import message
from tests.changes.formats.cases import Case, Row

BLOB, CLOB, VARCHAR = 2004, 2005, 12
TEXT = '{"a": "ü数"}'
BYTES = TEXT.encode().decode("latin-1")
"""As Canal 1.1.7 sends it where MariaDB 10.11 declares the column as JSON."""

Make = Callable[[str, int | None, str | None], bytes]
"""A message of row 1 by the declared type of ``v``, the number of that type, and the text."""


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


def rows(*texts: str | None) -> list[Row]:
    return [("U", {"id": 1, "v": text}) for text in texts]


def sent_bytes(make: Make) -> list[Case]:
    """The cases of a format."""
    return [
        *(
            Case(f"bytes of {declared} become the text that they are",
                 [make(declared, BLOB, text) for text in (BYTES, None, "{}", "")] * 10,
                 rows=rows(TEXT, None, "{}", "") * 10)
            for declared in ("JSON", "json", "TEXT(300)", "text(20)")
        ),
        *(
            Case(f"a null of {declared} has the number {null} of the bytes that it would have had"
                 f"{', and comes first' * len(first)}",
                 [*first, make(declared, BLOB, BYTES), make(declared, null, None)],
                 rows=rows(*[None] * len(first), TEXT, None))
            for declared in ("json", "text(300)") for null in (-3, -4)
            for first in ([make(declared, null, None)], [])
        ),
        *(
            Case(f"a text of {declared} that has the number {number} stays what it is",
                 make(declared, number, BYTES), rows=rows(BYTES))
            for declared, number in (("json", VARCHAR), ("json", None), ("text", CLOB),
                                     ("text", BLOB), ("varchar(9)", VARCHAR))
        ),
        *(
            Case(f"{text} in bytes is no UTF-8: another character set's, or another writer's",
                 make("JSON", BLOB, text), unfit=f"v: '{text}' is not a JSON")
            for text in ("ü", "数")
        ),
    ]  # fmt: skip

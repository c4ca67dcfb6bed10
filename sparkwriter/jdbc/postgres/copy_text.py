"""Columns of texts as the text of PostgreSQL's COPY. No code runs a row."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sparkwriter.jdbc.session import Loaded

_SPECIAL = r"[\\\t\n\r]"
_ESCAPES = (("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r"))


def copy_text(columns: Sequence[Loaded]) -> memoryview:
    """All rows: fields between tabs, rows ended by a newline."""
    fields = [_field(column) for column in columns]
    joined = pc.binary_join_element_wise(*fields, "\t")
    lines = pc.binary_join_element_wise(joined, "", "\n")
    return data_of(lines)


def data_of(texts: pa.StringArray) -> memoryview:
    """The bytes of all texts, one behind the other. None may be null."""
    size = pc.sum(pc.binary_length(texts)).as_py() or 0
    assert texts.offset == 0
    return memoryview(texts.buffers()[2] or b"")[:size]


def _field(column: Loaded) -> pa.Array:
    texts = column.texts
    if column.binary:
        texts = pc.binary_join_element_wise(r"\\x", texts, "")
    elif pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        for character, escape in _ESCAPES:
            texts = pc.replace_substring(texts, character, escape)
    return pc.fill_null(texts, r"\N")

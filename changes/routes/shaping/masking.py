"""Masked columns: values are shown as something else, which does not lead back to them.

NULL stays NULL. A masked column is text, whatever its type at the source.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.expressions.types import _each_value, text_of
from changes.routes.shaping.masks import Mask

REDACTED = "***"


def masked(column: pa.ChunkedArray, mask: Mask, salt: str) -> pa.ChunkedArray:
    """The column as the mask shows it: text, NULL where it was NULL."""
    match mask.kind:
        case "redact":
            shown = pc.if_else(pc.is_valid(column), REDACTED, pa.scalar(None, pa.string()))
        case "keep_last":
            shown = _kept(text_of(column), mask.keep)
        case "sha256":
            shown = _each_value(column, lambda value: _hash(value, salt.encode()))
    return shown if isinstance(shown, pa.ChunkedArray) else pa.chunked_array([shown])


def _kept(texts: pa.ChunkedArray, keep: int) -> pa.ChunkedArray:
    """The last characters behind stars; of a text that is no longer than that, stars alone."""
    length = pc.utf8_length(texts)
    long = pc.greater(length, keep)
    stars = pc.if_else(long, pc.subtract(length, keep), length)
    hidden = pc.binary_repeat(pa.scalar("*"), stars)
    last = pc.if_else(long, pc.utf8_slice_codeunits(texts, -keep), "")
    return pc.binary_join_element_wise(hidden, last, "")


def _hash(value: str | bytes, salt: bytes) -> str:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return hashlib.sha256(salt + data).hexdigest()

"""Masks: a column's values are shown as something else, which does not lead back to them.

NULL stays NULL. A masked column is text, whatever its type at the source.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.expressions.types import _each_value, text_of

ALLOWED = "keep_last(n), redact, sha256"
REDACTED = "***"

SHORTEST_SALT = 16
"""Characters. With a shorter one all salts could be tried until a known value's hash is met."""

_KEEP_LAST = re.compile(r"keep_last\( ?([0-9]{1,3}) ?\)")


@dataclass(frozen=True, slots=True)
class Mask:
    """How one column is masked. ``keep``: how many characters ``keep_last`` shows."""

    kind: Literal["keep_last", "redact", "sha256"]
    keep: int = 0

    @property
    def text(self) -> str:
        """As the configuration writes it."""
        return f"keep_last({self.keep})" if self.kind == "keep_last" else self.kind

    @property
    def injective(self) -> bool:
        """Whether two values always stay two."""
        return self.kind == "sha256"

    def problem(self, type_: pa.DataType, *, key: bool) -> str | None:
        """Why a column of that type can't be masked so, None where it can."""
        if key and not self.injective:
            return "rows are told apart by it, and only sha256 keeps two values two"
        if key and pa.types.is_floating(type_):
            return "a floating-point number has several texts, so its hash does not tell rows apart"
        if self.kind == "keep_last" and pa.types.is_binary(type_):
            return "bytes have no characters to keep: use sha256 or redact"
        return None


def mask_of(words: str) -> Mask:
    """Parse a mask of the configuration. Raises ValueError."""
    plain = " ".join(words.split())
    if plain == "redact":
        return Mask("redact")
    if plain == "sha256":
        return Mask("sha256")
    if (found := _KEEP_LAST.fullmatch(plain)) and int(found[1]):
        return Mask("keep_last", int(found[1]))
    raise ValueError(f"unknown mask {words!r}; allowed: {ALLOWED}")


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

"""Masks in the configuration's words. ``masking.py`` applies them to columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

ALLOWED = "keep_last(n), redact, sha256"

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
        import pyarrow as pa  # late: a configuration is read without it

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

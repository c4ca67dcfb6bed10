"""Images of rows, as the records of most formats hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, eq=False)
class RowShape:
    """What rows are like that come alike: their columns in order, declared types, the key.

    A format that meets one shape often makes it once: the engine knows it again by identity.
    """

    names: tuple[str, ...]
    types: Mapping[str, str]
    keys: tuple[str, ...]
    types_text: bytes | None = None
    """The bytes that declare the types, where equal ones declare equal types."""
    key_text: bytes | None = None
    """The bytes that name the key, likewise."""
    whole: RowShape | None = None
    """The same with the columns that only an update's old row holds, if those are no others'."""


class RowImage(NamedTuple):
    """One row change. ``op`` is I, U or D.

    Images hold the columns that are known; ``was`` is an update's old row, None where the record
    has none. Cells are text, null as None, or a JSON value's bytes (``msgspec.Raw``).
    """

    op: str
    now: Mapping[str, Any]
    was: Mapping[str, Any] | None
    shape: RowShape
    position: str | None = None

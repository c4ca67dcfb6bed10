"""Sizes and times as people write them: ``"64 MiB"``, ``"2h"``. The types of configuration keys.

A key says its own unit (``max_age_s``, ``budget_bytes``): a number without a unit is in that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

_TIMES: Mapping[str, int | Decimal] = {
    "ms": Decimal("0.001"), "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800,
}  # fmt: skip
_SIZES: Mapping[str, int | Decimal] = {
    "B": 1,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip

LONGEST_S = 100 * 366 * 86_400.0
"""A hundred years. What is longer is a slip: nothing is ever due, or a wait of the system fails."""

LARGEST = (1 << 63) - 1
"""Bytes. What is more fits into no counter of the libraries that get it."""

_NUMBER = r"\d[\d_]*(?:\.\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)", re.ASCII)
_ALONE = re.compile(_NUMBER, re.ASCII)


def moment_of(text: str, wanted: str = "2026-01-31T00:00:00Z") -> datetime:
    """A time with its zone (ISO 8601), in UTC. ``wanted``: what an error says is required. Raises
    ValueError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{wanted} is required, not {text!r}") from error
    if found.tzinfo is None:
        raise ValueError(f"{text!r} needs a zone, such as {text}Z")
    return found.astimezone(UTC)


def seconds_of(text: str) -> float:
    """Of a number with a unit: ``500ms``, ``90 s``, ``30m``, ``2h``, ``7d``. Raises ValueError."""
    found = _product(text, _TIMES)
    if found is None:
        raise ValueError(f"{text!r} is no time: a number with {', '.join(_TIMES)} is required")
    return float(found)


def bytes_of(text: str) -> int:
    """Of a number with a unit: ``64MiB`` (1,048,576 bytes each), ``64 MB`` (1,000,000). Upper and
    lower case are the same. Raises ValueError."""
    found = _product(text, _SIZES)
    if found is None:
        raise ValueError(f"{text!r} is no size: a number with {', '.join(_SIZES)} is required")
    if found != int(found):
        raise ValueError(f"{text!r} is no whole number of bytes")
    return int(found)


def _product(text: str, units: Mapping[str, int | Decimal]) -> Decimal | None:
    """The number in its unit; None where either is none."""
    found = _WITH_UNIT.fullmatch(text.strip())
    known = {name.lower(): factor for name, factor in units.items()}
    if found is None or found[2].lower() not in known:
        return None
    return Decimal(found[1].replace("_", "")) * known[found[2].lower()]


def _seconds(value: Any) -> Any:
    """What an environment variable holds may be a number without a unit."""
    if isinstance(value, str):
        value = float(value) if _ALONE.fullmatch(value.strip()) else seconds_of(value)
    if isinstance(value, int | float) and value > LONGEST_S:
        raise ValueError(f"{value} is no time: a hundred years at most")
    return value


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        alone = _ALONE.fullmatch(value.strip())
        value = bytes_of(f"{value} B" if alone else value)
    if isinstance(value, int) and value > LARGEST:
        raise ValueError(f"{value} is no size: {LARGEST} bytes at most")
    return value


def _either(number: type, units: Mapping[str, object]) -> Any:
    """A number or a text, as an editor may check it; a reference to a variable is a text, too."""
    unit = "|".join("".join(f"[{c.lower()}{c.upper()}]" for c in name) for name in units)
    return number | Annotated[str, Field(pattern=rf"^\s*{_NUMBER}\s*({unit})?\s*$")]


Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=_either(float, _TIMES))]
"""A number of seconds, or a text with a unit of time."""

Bytes = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=_either(int, _SIZES))]
"""A whole number of bytes, or a text with a unit of size."""

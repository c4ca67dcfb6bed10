"""Parses ``--type`` of ``binlogd decode``: types of columns whose types no message declares."""

from __future__ import annotations

from collections.abc import Iterable

from changes.formats import check_types
from changes.model import ColumnTypes

_UNTYPED = ("canal-json", "debezium-json", "maxwell-json", "ogg-json")
"""The formats whose messages may not declare a column's type."""


def configured_types(format_name: str, texts: Iterable[str]) -> ColumnTypes:
    """The types of ``--type COLUMN=TYPE``, as a route's ``types``. Raises ValueError."""
    found: list[tuple[str, str]] = []
    for text in texts:
        name, equals, words = text.partition("=")
        if not (name and equals and words.strip()):
            raise ValueError(f"--type {text!r}: COLUMN=TYPE is wanted")
        found.append((name, words))
    if found and format_name not in _UNTYPED:
        raise ValueError(f"--type needs a --format of {', '.join(_UNTYPED)}: others tell types")
    try:
        check_types(format_name, tuple(found))
    except ValueError as error:
        raise ValueError(f"--type {error}") from error
    return tuple(found)

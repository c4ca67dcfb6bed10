"""Texts of records for a terminal."""

from __future__ import annotations

from datetime import UTC, datetime


def one_line(text: str) -> str:
    """Text that is safe for a terminal: the record's author must not control it."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def time_text(time_ms: int | None) -> str:
    """A record's time, in UTC."""
    if time_ms is None:
        return "not known"
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")

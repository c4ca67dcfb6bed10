"""What is asked of the Spark session, and how it refuses: values alone, which import no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from changes.sql.forms import Form


class ChunkColumn(NamedTuple):
    """A column of a chunk: the lake's type by Iceberg's name, and the text it is read from."""

    name: str
    type: str
    form: Form
    key: bool = False
    """In a key, zero dates are refused whatever the option."""


class ChunkQuery(NamedTuple):
    """One range: a SELECT of canonical texts in the columns' order, and its rows' file."""

    query: str
    out: Path


class ChunkUnreadable(Exception):
    """A value that does not fit its column, or a read that failed: one line.

    ``again``: another attempt may succeed (the database was away, a statement's time was up).
    """

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class NotWanted(Exception):
    """The query was cancelled, because the caller has to stop."""

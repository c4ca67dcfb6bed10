"""What a handler is told beside the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sparkwriter.handler.calls import About

MOST_REJECTED = 10_000
"""Rows that one batch may reject. More are not bad rows, but a handler that is wrong."""


class TooManyRejected(Exception):
    """A batch rejects more than MOST_REJECTED rows."""


class Context:
    """One call's. Used by the handler's process alone."""

    def __init__(self, about: About, settings: Mapping[str, Any]) -> None:
        self._about = about
        self._rejected: list[tuple[str, str]] = []
        self.settings = settings
        """``[sink.NAME.settings]`` of the configuration."""

    @property
    def target(self) -> str:
        """The target: ``sink.namespace.table``."""
        return str(self._about.target)

    @property
    def namespace(self) -> str:
        """The target's middle part."""
        return self._about.target.namespace

    @property
    def table(self) -> str:
        """The target's last part."""
        return self._about.target.table

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key's columns; none for a changelog."""
        return self._about.keys

    @property
    def mode(self) -> str:
        """``upsert``: a row replaces the one of its key. ``append``: rows are what happened."""
        return self._about.mode

    @property
    def lanes(self) -> Mapping[str, tuple[int, int]]:
        """Of each ``topic:partition`` that the rows come from: they are above the first offset, up
        to the second."""
        return self._about.lanes

    @property
    def marks(self) -> str:
        """What ``done_through`` is to give back once the rows are stored: keep it beside them, in
        the same transaction. A text that means something to binlogd alone."""
        return self._about.marks

    @property
    def version(self) -> int:
        """Grows from batch to batch, also when a table is read again: 63 bits. A store that keeps
        the highest version of each key never goes back, whoever comes late."""
        return self._about.version

    def reject(self, row: Mapping[str, Any], reason: str) -> None:
        """Give up a row: it is kept as a line of ``rejected.jsonl`` with the reason, and the batch
        goes on without it. Raises TooManyRejected."""
        if len(self._rejected) >= MOST_REJECTED:
            raise TooManyRejected(f"more than {MOST_REJECTED} rows are rejected: {reason}")
        self._rejected.append((json.dumps(dict(row), default=_shown, ensure_ascii=False), reason))

    @property
    def rejected(self) -> tuple[tuple[str, str], ...]:
        """What ``reject`` was given, as JSON, each with its reason."""
        return tuple(self._rejected)


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)

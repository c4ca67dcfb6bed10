"""What a handler gets beside the rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from sparkwriter.function.calls import CallContext

MOST_REJECTED = 10_000
"""Rows that one batch may reject. More are not bad rows, but a handler that is wrong."""


class RejectRefused(Exception):
    """A row can't be given up: one line. The call fails for good, even where the handler swallows
    this: the row would be nowhere."""


class TooManyRejected(RejectRefused):
    """A batch rejects more than MOST_REJECTED rows."""


class Context:
    """One call's. Used by the handler's process alone."""

    def __init__(
        self, about: CallContext, settings: Mapping[str, Any], has_rows: bool = True
    ) -> None:
        """``has_rows``: False for a statement, which has none that could be given up."""
        self._about = about
        self._has_rows = has_rows
        self._rejected: list[tuple[str, str]] = []
        self._refused = ""
        self._over = False
        self._lock = threading.Lock()
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
    def left_out(self) -> tuple[str, ...]:
        """The columns that inserts among the rows came without (MINIMAL row images): they took
        their default at the source, which no message has. They are None in these rows, or not there
        at all, and the target carries ``rows_may_differ`` from then on."""
        return self._about.left_out

    @property
    def marks(self) -> str:
        """What ``done_through`` is to give back once the rows are stored: keep it beside them, in
        the same transaction. A text that means something to binlogd alone."""
        return self._about.marks

    @property
    def version(self) -> int:
        """Grows from batch to batch, also when a table is read again: 63 bits. A store that keeps
        the highest version of each key never goes back, even for a write that comes late."""
        return self._about.version

    def reject(self, row: Mapping[str, Any], reason: str) -> None:
        """Give up a row: it is kept as a line of ``rejected.jsonl`` with the reason, and the batch
        goes on without it. Raises RejectRefused, of it TooManyRejected: the batch has failed.

        Any thread, while the call lasts: afterwards the batch is done, and it raises.
        """
        with self._lock:
            try:
                if self._over:
                    raise RejectRefused(f"a row is rejected after its call has returned: {reason}")
                self._rejected.append(self._kept(row, reason))
            except RejectRefused as error:
                self._refused = self._refused or str(error)
                raise

    def close(self) -> None:
        """The call has returned."""
        with self._lock:
            self._over = True

    def _kept(self, row: Mapping[str, Any], reason: str) -> tuple[str, str]:
        if not self._has_rows:
            raise RejectRefused(f"a row is rejected where there are none: {reason}")
        if len(self._rejected) >= MOST_REJECTED:
            raise TooManyRejected(f"more than {MOST_REJECTED} rows are rejected: {reason}")
        try:
            return json.dumps(dict(row), default=_shown, ensure_ascii=False), str.__str__(
                str(reason)
            )
        except Exception as error:
            # The row is the handler's own object: whatever it raises, the row is not kept.
            text = f"a rejected row can't be kept: {type(error).__name__}: {error}"
            raise RejectRefused(text) from error

    @property
    def rejected(self) -> tuple[tuple[str, str], ...]:
        """What ``reject`` was given, as JSON, each with its reason."""
        return tuple(self._rejected)

    @property
    def refused(self) -> str:
        """Why ``reject`` raised first; empty where it never did."""
        return self._refused


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)

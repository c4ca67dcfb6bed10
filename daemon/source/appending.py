"""The port's part for appending records to a log in transactions; only a replay uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Header = tuple[str, str | bytes | None]


class AppendFailed(Exception):
    """Nothing was appended: one line."""


class OutcomeUnknown(AppendFailed):
    """The broker did not say whether the records were appended. The log shows it later."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}: whether the records were appended is not known; the next run finds out"
        )


class AppendRefused(Exception):
    """The pipeline's settings make an append unsafe: one line. Nothing was asked of the broker."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record for a partition. ``partition`` None: the broker's client chooses one."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


class Appender(Protocol):
    """Appends for one pipeline. One thread's. A second one fences the first."""

    def append(
        self,
        records: Sequence[Outgoing],
        check: Callable[[Sequence[int]], bool],
        marks: Callable[[Sequence[int]], Sequence[Outgoing]],
    ) -> list[int] | None:
        """Append all records or none. Returns their offsets, or None when ``check`` said no.

        ``check`` gets the offsets that the records will have. ``marks`` returns further records
        for the same transaction. Raises AppendFailed, OutcomeUnknown, and what ``check`` raises.
        """
        ...

"""Marks of replayed letters: which ones, and where their records stand in the log since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from daemon.letters.letter import LetterId, NotALetter, parse_place


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks a letter as replayed: its record was appended to the log again, at ``at``."""

    id: LetterId
    at: str
    when: datetime

    @classmethod
    def now(cls, letter: LetterId, at: str) -> Mark:
        """A mark with the current time."""
        return cls(letter, at, datetime.now(UTC))

    @classmethod
    def parse(cls, members: Mapping[str, Any]) -> Mark:
        """Parse what ``document`` made. Raises NotALetter."""
        try:
            source, offset = parse_place(members["letter"])
            letter = LetterId(members["pipeline"], source, offset, members["target"])
            return cls(letter, str(members["at"]), datetime.fromisoformat(members["when"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise NotALetter(f"not a mark: {error!r}") from error

    @property
    def document(self) -> dict[str, Any]:
        """The mark as files and topics hold it."""
        return {
            "pipeline": self.id.pipeline,
            "letter": self.id.place,
            "target": self.id.target,
            "at": self.at,
            "when": self.when.isoformat(timespec="milliseconds"),
        }

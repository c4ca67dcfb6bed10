"""What reads a database's log and writes its changes to Kafka, behind one face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.live.sources import Source


class Reader(Protocol):
    """A reader, for any number of seeds at once. One thread's."""

    format: str
    """Of what it writes."""
    left_out: Mapping[str, str]
    """Kinds of steps of which its stream can't tell, and why."""
    unread: Mapping[str, str]
    """Statements that it does not read rightly, as patterns, and what it makes of them."""
    images: Sequence[str]
    """The row images of MariaDB that it reads."""
    can_be_killed: bool
    """Whether it knows the tables of its place in the log when it comes again."""

    def start(self) -> None:
        """Start it, with what it read before; raises LiveError."""

    def kill(self) -> None:
        """kill -9. What it has noted stays."""

    def add(
        self,
        name: str,
        topic: str,
        seed: int,
        source: Source,
        folder: Path,
        more: Mapping[str, str] = {},
    ) -> None:
        """Read a seed's databases into a topic, from now on; raises LiveError. ``more``: settings
        of a connector, where it is one."""

    def remove(self, name: str) -> None:
        """Read a seed no more."""

    def failure(self, name: str) -> str:
        """Why it has ended by itself for a seed; empty while it runs."""

    def start_again(self, name: str) -> None:
        """As an operator does where the database was away."""

"""Addresses of actors: who sends a message, and who gets it."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """Who gets a message: a role in a pipeline, and which one of several.

    The writers belong to no pipeline (they share one Spark session): their pipeline is ``""``.
    """

    pipeline: str
    role: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.role}[{self.number}]"


WRITERS = Address("", "writers")
"""The queue that all writers take from."""

"""How a batch is written: which of the ways is right for it, and of these the cheapest. Pure.

Figures are in decision 33.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SEEKABLE_ROWS = 32_000_000
"""Beyond so many stored rows a job, which has all cores of the session, finds keys sooner."""


class Way(Enum):
    """A way to write a batch, from the cheapest to the dearest."""

    APPEND = "append"
    """Nothing stored can have one of the keys: its rows are added, as one file, without a job."""
    VECTOR = "vector"
    """We find the stored rows of its keys in the key columns of the files that may hold them, and
    delete them by deletion vectors; its rows are added as one file; without a job."""
    REPLACE = "replace"
    """One job finds and deletes the stored rows of its keys, reading key columns only; then its
    rows are added."""
    INSERT = "insert"
    """As APPEND, by a statement: for what a file of ours can't be, such as a partitioned table."""
    MERGE = "merge"
    """One statement that reads and joins all columns: rows take over what they lack."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides.

    ``known_new``: for sure no stored row has one of the keys, or keys mean nothing. ``partial``:
    why a row is not whole as the file has it, ``special``: why the table can't take a file that
    its engine did not write; None where neither is so. ``stored``: rows in the files that may hold
    one of the keys, by their metadata; None where that is not ours to look through.
    """

    known_new: bool
    partial: str | None = None
    special: str | None = None
    stored: int | None = None


def choose(facts: Facts) -> Way:
    """The cheapest way that is right."""
    if facts.known_new:
        return Way.APPEND if facts.partial is None and facts.special is None else Way.INSERT
    if facts.partial is not None or facts.special is not None:
        return Way.MERGE
    if facts.stored is None or facts.stored > SEEKABLE_ROWS:
        return Way.REPLACE
    return Way.VECTOR

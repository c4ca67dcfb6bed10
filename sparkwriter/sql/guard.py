"""What a target with source positions asks of a write: the SQL, pure.

A row is taken only where it is not older than what the target holds of its key, nor than the key's
deletion. Deletions are remembered as tombstones in a table beside the target's, whose own rows
are thus just the living ones. A tombstone only says that a key was deleted at a position: true from
before the delete is published, true for ever, so adding one early or twice does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changes.model import OP, POSITION
from sparkwriter.sql.schema import LakeColumn

SUFFIX = "__binlogd_tombstones"
"""What a target's table of tombstones is named: the target's name and this."""

OF = "__binlogd_of"
"""The UUID of the table that a tombstone is of. One that was made anew has another."""

AT = "__binlogd_at"
"""When the tombstone was written: it goes once no lane can lag that far behind."""

TOMBSTONE_COLUMNS = (
    LakeColumn(POSITION, "string"),
    LakeColumn(OF, "string"),
    LakeColumn(AT, "timestamptz"),
)


@dataclass(frozen=True, slots=True)
class Guard:
    """``tombstones``: the table's quoted identifier, None where there is none yet.

    ``of`` is the UUID of the target's table.
    """

    of: str
    tombstones: str | None = None


def newer_than_tombstones(
    guard: Guard, key: Mapping[str, str], ranges: Sequence[str], source: str
) -> str:
    """The source without the rows that are older than their key's tombstone.

    ``key`` maps the target's key columns to the source's, all quoted; ``ranges`` are conditions on
    ``t``, the tombstones, that only spare reading files.
    """
    if guard.tombstones is None:
        return source
    same = [f"t.{have} <=> s.{given}" for have, given in key.items()]
    terms = [f"t.{OF} = '{guard.of}'", *same, *ranges, f"t.{POSITION} > s.{POSITION}"]
    return (
        f"(\n  SELECT s.* FROM {source} s\n"
        f"  LEFT ANTI JOIN {guard.tombstones} t ON {' AND '.join(terms)}\n)"
    )


NOT_OLDER = f"s.{POSITION} >= coalesce(t.{POSITION}, '')"
"""The condition under which a row replaces or ends the stored one. Equal ones are the same change,
or of one lane, which is in order."""


def add_tombstones(guard: Guard, key: Mapping[str, str], source: str) -> str:
    """The statement that remembers the deletions in the source."""
    names = [*key, POSITION, OF, AT]
    values = [*(f"s.{given}" for given in key.values()), f"s.{POSITION}", f"'{guard.of}'"]
    return (
        f"INSERT INTO {guard.tombstones} ({', '.join(names)})\n"
        f"SELECT {', '.join(values)}, current_timestamp()\nFROM {source} s\nWHERE s.{OP} <> 'U'"
    )

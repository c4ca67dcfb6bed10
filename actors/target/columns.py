"""What is known of a target's columns beside what the target itself shows.

It follows what is planned and staged, ahead of the target: what rows show (``column_changes``) and
what statements do (``barrier``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from actors.contract.writes import Doubt
from actors.target.pending import DeadRecord
from changes.model.model import TableSchema


@dataclass(slots=True)
class Columns:
    """What is known of one target's columns."""

    types: dict[str, str] = field(default_factory=dict)
    """Their types in the source's words, by names in small letters, as far as known. Whenever the
    target is looked at again they are forgotten: what they came from may be given up, or another
    member's."""
    stated: set[str] = field(default_factory=set)
    """Those that statements added, after their tables: rows that have them are no change."""
    filled: set[str] = field(default_factory=set)
    """Those reported because their NULLs may come as the default, after their tables."""
    shown: dict[str, set[str]] = field(default_factory=dict)
    """Of source tables among several, the columns that their rows have shown where some inserts
    came without columns."""
    left_out: set[str] = field(default_factory=set)
    """What was said of columns that such inserts may leave out."""
    begun: bool = False
    """Whether the target's first change of this run was looked at."""
    doubts: dict[str, Doubt] = field(default_factory=dict)
    """Changes that rows show and no statement announced, until a write has published them."""
    generation: int = 0
    """How often what is known was out of date, by a DDL or by other columns."""
    outdated: bool = False
    """The target has other columns than the decoder knows, which another member gave it."""
    _reminded: int | None = None
    """The last generation for which the decoder got the stored columns."""
    _restarted: tuple[DeadRecord, int] | None = None
    """The latest message whose columns replace those before, and the generation that begins with
    it. It may be given up before that begins, and read again."""

    def learn(self, declared: Mapping[str, str]) -> None:
        """Take types that came with rows."""
        self.types |= {name.lower(): words for name, words in declared.items()}

    def stated_by(
        self, types: Mapping[str, str], added: Collection[str], *, outdated: bool
    ) -> None:
        """Take what a statement leaves. ``outdated``: what earlier rows showed is."""
        self.generation += outdated
        self.types = dict(types)
        self.stated.update(added)

    def take_first(self) -> bool:
        """Whether this is the target's first change of this run: True once."""
        first, self.begun = not self.begun, True
        return first

    def published(self, carried: Collection[Doubt]) -> None:
        """A write has published these doubts."""
        self.doubts = {key: each for key, each in self.doubts.items() if each not in carried}

    def look_again(self, *, changed: bool) -> None:
        """Forget the types, because the target is looked at again. ``changed``: it has others."""
        self.types = {}
        self.outdated |= changed

    def change(self) -> None:
        """Start a generation: what decoders know of the columns is out of date."""
        self.generation += 1
        self.outdated = False

    def restart(self, record: DeadRecord) -> None:
        """Rows have other columns than those before: they are decoded as if they were the first."""
        self._restarted = record, self.generation + 1

    def begins_with(self, record: DeadRecord) -> bool:
        """Whether this generation began with that message: then it is of no other columns."""
        return self._restarted == (record, self.generation)

    def reminder(self, stored: TableSchema | None) -> TableSchema | None:
        """The stored columns, where the decoder needs them. Once is enough, and cheaper: it
        remembers, and a hundred types take 1 ms to send."""
        known = self._reminded == self.generation
        self._reminded = self.generation
        return None if known else stored

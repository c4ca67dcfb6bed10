"""JSON forms of what an operator or a job began: moved marks, rebuilds, loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered, Rebuild, SwapRefused
from offsets.snapshot import MarkMoves

V = TypeVar("V")
Mark = Annotated[int, msgspec.Meta(ge=-1)]


class MovesForm(msgspec.Struct, forbid_unknown_fields=True):
    """Moves of marks as JSON's members."""

    lower: dict[str, Mark]
    lift: dict[str, Mark]

    @classmethod
    def of(cls, moves: MarkMoves) -> MovesForm:
        """From the value."""
        return cls(texts(moves.lower), texts(moves.lift))

    def value(self) -> MarkMoves:
        """Raises ValueError at a name that is no partition."""
        return MarkMoves(sources(self.lower), sources(self.lift))


class BrokenForm(msgspec.Struct, forbid_unknown_fields=True):
    """Why a load can't go on, as JSON's members."""

    reason: str
    behind: dict[str, Mark]


class LoadForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A load as JSON's members. An older binlogd, which would write the stream beside the loaded
    rows, refuses the whole snapshot."""

    job: str
    since: dict[str, Mark]
    ends: dict[str, Mark] | None = None
    broken: BrokenForm | None = None

    @classmethod
    def of(cls, load: Load) -> LoadForm:
        """From the value."""
        ends = None if load.ends is None else texts(load.ends)
        why = load.broken
        broken = None if why is None else BrokenForm(why.reason, texts(why.behind))
        return cls(load.job, texts(load.since), ends, broken)

    def value(self) -> Load:
        """Raises ValueError at a name that is no partition."""
        ends = None if self.ends is None else sources(self.ends)
        why = self.broken
        broken = None if why is None else LoadHindered(why.reason, sources(why.behind))
        return Load(self.job, sources(self.since), ends, broken)


class RefusedForm(msgspec.Struct, forbid_unknown_fields=True):
    """Why a table could not take its name, as JSON's members."""

    reason: str
    attempts: int


class RebuildForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A rebuild as JSON's members."""

    into: str
    until: dict[str, Mark]
    keep_old: bool = False
    cancelled: bool = False
    load: LoadForm | None = None
    leftover: tuple[str, ...] = ()
    refused: RefusedForm | None = None
    begun_at: dict[str, Mark] = {}
    lost: dict[str, Mark] = {}

    @classmethod
    def of(cls, rebuild: Rebuild) -> RebuildForm:
        """From the value."""
        load = None if rebuild.load is None else LoadForm.of(rebuild.load)
        until, left, why = texts(rebuild.until), rebuild.leftover, rebuild.refused
        refused = None if why is None else RefusedForm(why.reason, why.attempts)
        return cls(
            rebuild.into, until, rebuild.keep_old, rebuild.cancelled, load, left, refused,
            texts(rebuild.begun_at), texts(rebuild.lost),
        )  # fmt: skip

    def value(self) -> Rebuild:
        """Raises ValueError at a name that is no partition."""
        load = None if self.load is None else self.load.value()
        until, left, why = sources(self.until), self.leftover, self.refused
        refused = None if why is None else SwapRefused(why.reason, why.attempts)
        return Rebuild(
            self.into, until, self.keep_old, self.cancelled, load, left, refused,
            sources(self.begun_at), sources(self.lost),
        )  # fmt: skip


def texts(by_source: Mapping[TopicPartition, V]) -> dict[str, V]:
    """With partitions as texts."""
    return {str(source): value for source, value in by_source.items()}


def sources(by_text: Mapping[str, V]) -> dict[TopicPartition, V]:
    """With partitions of texts. Raises ValueError at one that is none."""
    return {TopicPartition.parse(source): value for source, value in by_text.items()}

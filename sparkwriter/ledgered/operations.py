"""What one step does to tables and to the ledger, as values."""

from __future__ import annotations

from dataclasses import dataclass

from actors.contract.writes import StagedBatch
from changes.model import TargetName
from offsets.fence import Marks
from sparkwriter.ledgered.made import Made, Row


@dataclass(frozen=True, slots=True)
class Make:
    """A new table, empty."""

    target: TargetName
    made: Made


@dataclass(frozen=True, slots=True)
class Remake:
    """A table gets other columns. A field's id is its place in ``before``, None is a new one's."""

    target: TargetName
    before: Made
    after: Made
    emptied: bool = False

    @property
    def is_same(self) -> bool:
        """Whether no column changes."""
        old = [(at, field.name, field.type) for at, field in enumerate(self.before.fields)]
        return [(field.id, field.name, field.type) for field in self.after.fields] == old


@dataclass(frozen=True, slots=True)
class Rename:
    """A table gets another name. ``made`` is the table."""

    old: TargetName
    new: TargetName
    made: Made

    @property
    def is_exchange(self) -> bool:
        """Whether a table that was filled under another name takes the one of the table before."""
        return self.made.rebuilt == str(self.old)


@dataclass(frozen=True, slots=True)
class Drop:
    """A table goes away."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class WriteRows:
    """A batch's rows. Its file is there."""

    seen: Row
    batch: StagedBatch


@dataclass(frozen=True, slots=True)
class TakeAbove:
    """Of a changelog, the rows above lowered marks go."""

    target: TargetName
    before: Marks
    after: Marks


@dataclass(frozen=True, slots=True)
class TakeOver:
    """A table that was filled anew gets what the one has whose name it takes: rights, comments."""

    new: TargetName
    old: TargetName


Operation = Make | Remake | Rename | Drop | WriteRows | TakeAbove | TakeOver


def is_statement(operation: Operation) -> bool:
    """Whether a statement about a table is needed. Not for rows."""
    return not (isinstance(operation, Remake) and operation.is_same)


@dataclass(frozen=True, slots=True)
class Shows:
    """The target shows these marks, and a table or none."""

    target: TargetName
    marks: Marks
    made: Made | None


@dataclass(frozen=True, slots=True)
class Forgets:
    """The target shows nothing any more."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class Frees:
    """Which renaming may take the target's name."""

    target: TargetName
    renaming: str


Entry = Shows | Forgets | Frees

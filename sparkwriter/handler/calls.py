"""What the sink asks of its handler's process, and what that answers. Both sides know only this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from changes.model import TargetName

StatementKind = Literal["truncate", "drop", "rename"]


@dataclass(frozen=True, slots=True)
class Start:
    """The first thing that a process hears: which function, found from where, with what."""

    entry: str
    path: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """The module is there. ``statements``: it has a function for them; ``keeps_marks``: one that
    says up to where it has come."""

    statements: bool
    keeps_marks: bool


@dataclass(frozen=True, slots=True)
class About:
    """What a call is about; the user's ``Context`` shows it."""

    target: TargetName
    keys: tuple[str, ...]
    mode: str
    lanes: Mapping[str, tuple[int, int]]
    marks: str
    version: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """The rows of a staged file are to be applied."""

    about: About
    file: str


@dataclass(frozen=True, slots=True)
class Carry:
    """A statement on the whole table. ``to``: its new name."""

    about: About
    kind: StatementKind
    to: TargetName | None = None


@dataclass(frozen=True, slots=True)
class AskMarks:
    """Up to where has it come, by its own account?"""

    about: About


Call = Apply | Carry | AskMarks


@dataclass(frozen=True, slots=True)
class Done:
    """It is done. ``marks``: the answer to ``AskMarks``. ``rejected``: rows that it can't take,
    each with the reason."""

    marks: str | None = None
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Raised:
    """It raised. ``lasting``: trying again won't help."""

    text: str
    lasting: bool = False

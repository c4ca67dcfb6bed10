"""What a source was told to do, and which of it concerns a table: for a report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.live.schema import Name, Step


@dataclass(frozen=True, slots=True)
class Entry:
    """A step that was tried; ``error`` is the server's answer where it refused it."""

    number: int
    step: Step
    error: str


@dataclass(slots=True)
class History:
    """Of one seed. One thread's."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def statements(self) -> int:
        """How many statements were accepted."""
        return sum(len(entry.step.statements) for entry in self.entries if not entry.error)

    def add(self, step: Step, error: str) -> None:
        """Note a step."""
        self.entries.append(Entry(len(self.entries) + 1, step, error))

    def of(self, name: Name) -> list[Entry]:
        """What concerns a table, under all its names, oldest first."""
        names, found = {name}, []
        for entry in reversed(self.entries):
            if names.isdisjoint(entry.step.about):
                continue
            if entry.step.kind != "rows":  # a transaction's tables have nothing to do with it
                names.update(entry.step.about)
            found.append(entry)
        return found[::-1]

    def about(self, name: Name) -> list[str]:
        """The same as lines, one for each step."""
        return [_line(entry) for entry in self.of(name)]


def _line(entry: Entry) -> str:
    refused = f"  -- refused: {entry.error.splitlines()[-1]}" if entry.error else ""
    return f"{entry.number:4} {entry.step.kind}: {'; '.join(entry.step.statements)}{refused}"

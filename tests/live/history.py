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

    def about(self, name: Name) -> list[str]:
        """The statements that concern a table, under all its names, oldest first, one a line."""
        names, lines = {name}, []
        for entry in reversed(self.entries):
            if names.isdisjoint(entry.step.about):
                continue
            if entry.step.kind != "rows":  # a transaction's tables have nothing to do with it
                names.update(entry.step.about)
            refused = f"  -- refused: {entry.error.splitlines()[-1]}" if entry.error else ""
            script = "; ".join(entry.step.statements)
            lines.append(f"{entry.number:4} {entry.step.kind}: {script}{refused}")
        return lines[::-1]

"""What ``check-config --connect`` finds in a database: lines, and those about any table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from databases.base.port import Findings, SourceTable

MOST_SKEW_S = 5.0
"""If the clocks differ by more, times in messages and times queried here can't be compared."""


class Finding(NamedTuple):
    """``wrong``: a job, or the stream, would not work. ``mend``: statements for the database that
    end it, in their order; empty where none does."""

    text: str
    wrong: bool
    mend: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """All of it."""
        return "; ".join((self.text, *self.mend))


def problem(text: str, *mend: str) -> Finding:
    """Something that must be changed."""
    return Finding(text, True, mend)


def warning(text: str, *mend: str) -> Finding:
    """Something that is legal but unwise."""
    return Finding(text, False, mend)


def findings(found: Iterable[Finding]) -> Findings:
    """All of a check, each line once."""
    lines = list(dict.fromkeys(found))
    return Findings(
        tuple(one.line for one in lines if one.wrong),
        tuple(one.line for one in lines if not one.wrong),
    )


def of_clock(ahead_us: int) -> Iterator[Finding]:
    """Both clocks, by how much the database's is ahead of this machine's."""
    seconds = ahead_us / 1_000_000
    if abs(seconds) > MOST_SKEW_S:
        way = "ahead of" if seconds > 0 else "behind"
        yield problem(
            f"its clock is {abs(seconds):.0f} s {way} this machine's: synchronize both (NTP)"
        )


def of_table(table: SourceTable) -> Iterator[Finding]:
    """What a load or a verification of a table would meet."""
    if not table.keys:
        yield warning(f"{table.name} has no key: it can't be loaded or verified")
    for column in table.columns:
        if column.form is None:
            yield warning(f"{table.name}, column {column.name}: {column.refused}")
    yield from of_collations(table)


def of_collations(table: SourceTable) -> Iterator[Finding]:
    """Keys that the database compares otherwise than the lake."""
    for name in table.keys:
        column = table.column(name)
        if column.collation is not None and column.collation.endswith(("_ci", "_ai")):
            yield warning(
                f"{table.name}, key {name}: its collation {column.collation} takes texts that"
                " differ for one, the lake does not"
            )

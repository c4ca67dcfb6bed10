"""What a run has come to, and what is kept of what nobody was told."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.live.checkpoint import Verdict
from tests.live.flow import Flow
from tests.live.jars import FOLDER
from tests.live.operator import Done

REPORT = FOLDER / "report.txt"
ENOUGH = 100
"""Of so many tables at least nine of ten must be equal: what is told only is no proof."""


@dataclass(slots=True)
class Tally:
    """Of a run. One thread's."""

    statements: int = 0
    changes: int = 0
    tables: int = 0
    equal: int = 0
    told: int = 0
    groundless: int = 0
    """Reasons that no step explains."""
    done: Done = field(default_factory=Done)
    handovers: int | None = None
    """How often another reader went on with the logs; None where nothing was to."""
    silent: list[str] = field(default_factory=list)
    """One report for each difference that nobody was told of."""

    def note(self, report: str) -> None:
        """Keep a report, on disk at once."""
        self.silent.append(report)
        FOLDER.mkdir(parents=True, exist_ok=True)
        REPORT.write_text("\n".join(self.silent) + "\n")

    @property
    def is_thin(self) -> bool:
        """Whether it proves too little: too few tables are equal, or nothing was handed over."""
        return bool(self._lack)

    @property
    def _lack(self) -> str:
        if self.handovers == 0:
            return "NO HAND-OVER"
        few = self.tables >= ENOUGH and self.equal * 10 < self.tables * 9
        return "FEWER THAN NINE OF TEN EQUAL" if few else ""

    def line(self) -> str:
        """The last line of a run."""
        word = self._lack or "OK"
        if self.silent:
            word = f"{len(self.silent)} SILENT"
        share = f" ({self.equal * 100 // self.tables} %)" if self.tables else ""
        found = (
            f"live: {word}, {self.statements} statements, {self.changes} changes,"
            f" {self.tables} tables: {self.equal} equal{share}, {self.told} told"
            f" ({self.groundless} without a cause),"
            f" {len(self.silent)} silent"
        )
        if self.handovers is not None:
            found += f", {self.handovers} hand-overs"
        done = self.done
        if not (done.loads or done.verifications):
            return found
        return (
            f"{found}; {done.loads} loads, {done.verifications} verifications,"
            f" {done.repairs} rows repaired, {done.cancels} cancels, {done.pauses} pauses,"
            f" {done.refused} refused by name, {done.planted} differences planted"
        )


def report(flow: Flow, number: int, verdict: Verdict | None, why: str) -> str:
    """What a reader needs to do it again by hand."""
    pipeline = flow.pipeline()
    settings = ", ".join(f"{key}={value}" for key, value in pipeline.more.items())
    lines = [f"seed {flow.seed}, at step {number} (into {pipeline.sink}, {settings})"]
    if verdict is None:
        return "\n".join([*lines, f"  {why}"])
    lines.append(f"  {'.'.join(verdict.name)} differs, and nothing was said of it:")
    lines += [f"    {line}" for line in verdict.lines]
    lines.append("  its statements:")
    lines += [f"    {line}" for line in flow.history.about(verdict.name)]
    return "\n".join(lines)

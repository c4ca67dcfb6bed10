"""Shows a run's progress at a terminal: a bar with rate and lag, and the reasons of failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from actors.contract.messages import Progress
from settings.counted import counted
from settings.shell import quoted

PLAIN_INTERVAL_S = 5.0
"""Between two lines where there is no terminal to draw on (a pipe, a build's log)."""


class Show(Protocol):
    """The main thread's display."""

    visible: bool

    def progress(self, progress: Progress) -> None:
        """Take note of a pipeline's progress."""
        ...

    def draw(self, elapsed_s: float) -> None:
        """Draw the present state."""
        ...

    def failure(self, name: str, reason: str) -> None:
        """Say in one line why something failed."""
        ...

    def close(self) -> None:
        """Stop drawing."""
        ...


class Quiet:
    """No bar: only failures are shown, on standard error."""

    visible = False

    def progress(self, progress: Progress) -> None:
        """Nothing to show."""

    def draw(self, elapsed_s: float) -> None:
        """Nothing to show."""

    def failure(self, name: str, reason: str) -> None:
        """Say in one line why something failed."""
        print(f"binlogd: {name}: {reason}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to stop."""


class FailuresShown:
    """Says why pipelines have failed, once for each failure."""

    def __init__(self, show: Show, redacted: Callable[[str], str], *, at_once: bool) -> None:
        """``at_once``: when a pipeline has ended, else at the process's end."""
        self._show, self._redacted, self._at_once = show, redacted, at_once
        self._told: Mapping[str, str] = {}

    def stopped(self, failures: Mapping[str, str], stages: Mapping[str, str]) -> None:
        """While the process stays: of those that have ended, with the command that leads out."""
        if not self._at_once:
            return
        ended = {name: why for name, why in failures.items() if stages[name] == "ended"}
        new = {name: why for name, why in ended.items() if self._told.get(name) != why}
        self._told = ended
        for name, why in new.items():
            self._show.failure(name, self._redacted(why))
            self._show.failure(
                name, f"has stopped; with its cause gone: `binlogd resume {quoted(name)}`"
            )

    def end(self, failures: Mapping[str, str]) -> None:
        """The process ends: of all that were not told."""
        self._show.close()
        for name, why in failures.items():
            if self._told.get(name) != why:
                self._show.failure(name, self._redacted(why))


class Bar(Quiet):
    """One line per pipeline: applied changes of those in the log at the start, rows/s, lag."""

    visible = True

    def __init__(self) -> None:
        self._seen: dict[str, Progress] = {}
        self._most: dict[str, int] = {}
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False)
        self._elapsed_s = 0.0
        self._printed_s = 0.0
        if self._console.is_terminal:
            self._live.start()

    def progress(self, progress: Progress) -> None:
        """Take note of a pipeline's progress."""
        name = progress.pipeline
        self._seen[name] = progress
        self._most[name] = max(self._most.get(name, 0), progress.lag)

    def draw(self, elapsed_s: float) -> None:
        """Redraw the lines. Without a terminal, print them now and then."""
        self._elapsed_s = elapsed_s
        if self._live.is_started:
            self._live.update(self._table(), refresh=True)
        elif elapsed_s >= self._printed_s + PLAIN_INTERVAL_S:
            self._print()

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._live.is_started:
            self._live.update(self._table(), refresh=True)
            self._live.stop()
        else:
            self._print()

    def _print(self) -> None:
        self._printed_s = self._elapsed_s
        for name in sorted(self._seen):
            print(*self._words(name), sep="  ", file=sys.stderr, flush=True)

    def _words(self, name: str) -> tuple[str, str, str, str]:
        seen = self._seen[name]
        rate = round(seen.changes / max(self._elapsed_s, 0.001))
        return (
            name,
            counted(seen.changes, "row"),
            f"{rate:,} rows/s",
            f"lag {counted(seen.lag, 'message')}",
        )

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, seen in sorted(self._seen.items()):
            most = max(self._most[name], 1)
            bar = ProgressBar(total=most, completed=most - seen.lag, width=32)
            first, *rest = self._words(name)
            table.add_row(first, bar, *rest)
        return table

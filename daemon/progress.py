"""What a person at a terminal sees of a run: a bar with rate and lag, a failure's reason."""

from __future__ import annotations

import sys
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from actors.messages import Progress


class Show(Protocol):
    """Where the main thread shows how it goes."""

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
        """Draw no more."""
        ...


class Quiet:
    """No bar: only failures are told, on standard error."""

    visible = False

    def progress(self, progress: Progress) -> None:
        """Nothing to show."""

    def draw(self, elapsed_s: float) -> None:
        """Nothing to show."""

    def failure(self, name: str, reason: str) -> None:
        """Say in one line why something failed."""
        print(f"binlogd: {name}: {reason}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to end."""


class Bar(Quiet):
    """One line per pipeline: what is applied of what the log held at the start, rows/s, lag."""

    visible = True

    def __init__(self) -> None:
        self._seen: dict[str, Progress] = {}
        self._most: dict[str, int] = {}
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=False)
        self._live.start()

    def progress(self, progress: Progress) -> None:
        """Take note of a pipeline's progress."""
        name = progress.pipeline
        self._seen[name] = progress
        self._most[name] = max(self._most.get(name, 0), progress.lag)

    def draw(self, elapsed_s: float) -> None:
        """Draw the lines anew."""
        table = Table.grid(padding=(0, 2))
        for name, progress in sorted(self._seen.items()):
            most = max(self._most[name], 1)
            rate = round(progress.changes / max(elapsed_s, 0.001))
            table.add_row(
                name,
                ProgressBar(total=most, completed=most - progress.lag, width=32),
                f"{progress.changes:,} rows",
                f"{rate:,} rows/s",
                f"lag {progress.lag:,} messages",
            )
        self._live.update(table, refresh=True)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._live.stop()

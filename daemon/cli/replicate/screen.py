"""Shows a replication: a table that is drawn again and again, or lines where no terminal is."""

from __future__ import annotations

from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from daemon.cli.base.options import make_console
from daemon.cli.replicate.board import Board
from daemon.operations.load.estimates import shown_time
from settings.counted import counted

LINE_EVERY_S = 10.0
"""Between two lines about rows, where there is no terminal."""

MOST_ROWS = 30
"""Tables that are drawn: those that are not equal first."""


class Screen(Protocol):
    """One thread's."""

    def event(self, text: str) -> None:
        """Say that something has happened."""
        ...

    def draw(self, board: Board) -> None:
        """Show the present state."""
        ...

    def close(self) -> None:
        """Show no more."""
        ...


def words(board: Board) -> str:
    """The state in one line."""
    equal = f"{board.equal:,} of {counted(len(board.rows), 'table')} equal"
    flow = board.flow
    if flow.done >= flow.total or all(row.state == "equal" for row in board.rows):
        return ", ".join(filter(None, (equal, board.following)))
    parts = [f"{flow.done:,} of about {counted(flow.total, 'row')}"]
    if flow.per_s:
        parts.append(f"{flow.per_s:,.0f} rows/s")
    if flow.left_s is not None:
        parts.append(f"about {shown_time(flow.left_s)} left")
    return ", ".join((*parts, equal))


class Lines:
    """A line for each event, and one now and then about what goes on."""

    def __init__(self) -> None:
        self._said, self._last_s = "", 0.0
        self._notes: frozenset[str] = frozenset()

    def event(self, text: str) -> None:
        """See ``Screen``."""
        print(f"binlogd: {text}", flush=True)

    def draw(self, board: Board) -> None:
        """See ``Screen``."""
        for note in board.notes:
            if note not in self._notes:
                self.event(note)
        self._notes = frozenset(board.notes)
        line = words(board)
        if line != self._said and board.seconds >= self._last_s + LINE_EVERY_S:
            self._said, self._last_s = line, board.seconds
            self.event(f"{board.seconds:.0f} s: {line}")

    def close(self) -> None:
        """Nothing to end."""


class Drawn:
    """The tables with their states, and the events above them."""

    def __init__(self) -> None:
        self._console = make_console()
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()

    def event(self, text: str) -> None:
        """See ``Screen``."""
        self._console.print(escape(f"binlogd: {text}"))

    def draw(self, board: Board) -> None:
        """See ``Screen``."""
        table = Table.grid(padding=(0, 2))
        unlike = sorted(board.rows, key=lambda row: row.state == "equal")
        for row in unlike[:MOST_ROWS]:
            table.add_row(escape(row.name), row.state, escape(row.said))
        if len(unlike) > MOST_ROWS:
            table.add_row(f"and {len(unlike) - MOST_ROWS:,} more", "", "")
        told = (escape(f"! {note}") for note in board.notes)
        head = escape(f"{board.seconds:.0f} s: {words(board)}")
        self._live.update(Group(table, *told, head), refresh=True)

    def close(self) -> None:
        """See ``Screen``."""
        self._live.stop()


def make_screen() -> Screen:
    """For standard output as it is."""
    return Drawn() if make_console().is_terminal else Lines()

"""What a person sees: lines where no terminal is, a table where one is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from daemon.cli.replicate import screen
from daemon.cli.replicate.board import Board, Flow, Row
from daemon.cli.replicate.screen import LINE_EVERY_S, Drawn, Lines, words


def board(seconds: float = 1.0, *notes: str, done: int = 250, equal: int = 1) -> Board:
    rows = [Row(f"shop.t{n}", "equal" if n < equal else "loads", "") for n in range(3)]
    return Board(rows, Flow(done, 1000, 50.0, 15.0), notes, "7 messages behind", seconds)


def test_rows_and_time_left_while_it_loads_then_how_far_it_is_behind() -> None:
    assert words(board()) == (
        "250 of about 1,000 rows, 50 rows/s, about 15 s left, 1 of 3 tables equal"
    )
    assert words(board(done=1000)) == "1 of 3 tables equal, 7 messages behind"
    assert words(board(equal=3)) == "3 of 3 tables equal, 7 messages behind"


def test_lines_come_now_and_then_and_a_note_once(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Lines()
    shown.draw(board(LINE_EVERY_S))
    shown.draw(board(LINE_EVERY_S + 1, "shop: its log is not read: restart it", done=300))
    shown.draw(board(LINE_EVERY_S + 2, "shop: its log is not read: restart it", done=400))
    shown.draw(board(2 * LINE_EVERY_S, done=500))
    shown.draw(board(3 * LINE_EVERY_S, done=500))
    assert capsys.readouterr().out.splitlines() == [
        f"binlogd: 10 s: {words(board())}",
        "binlogd: shop: its log is not read: restart it",
        f"binlogd: 20 s: {words(board(done=500))}",
    ]


def test_names_of_others_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's name may look like markup, or hold what acts on a terminal."""
    out = io.StringIO()
    made = Console(file=out, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(screen, "make_console", lambda: made)
    drawn = Drawn()
    hostile = Row("shop.[bold]x", "refused", "[/] why")
    drawn.draw(Board([hostile], Flow(0, 1, None, None), ["[red]ill"], "", 1.0))
    drawn.event("[blink]said")
    drawn.close()
    text = out.getvalue()
    assert all(part in text for part in ("shop.[bold]x", "[/] why", "[red]ill", "[blink]said"))

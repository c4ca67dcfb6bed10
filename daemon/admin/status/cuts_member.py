"""A pipeline's cuts, and what other actors beside its flow do, as members of the status document.
Pure."""

from __future__ import annotations

from typing import TypedDict

from actors.contract.figures import CutFigures
from actors.contract.of_counts import SideFigures


class Cuts(TypedDict):
    """``number``: the last cut of this run, null: none yet. ``error``: why none was made since, for
    ``failing_seconds``; null where that is not known."""

    number: int | None
    boundary: str | None
    seconds_ago: float | None
    source_ms: int | None
    tables: int
    left_out: dict[str, str]
    error: str | None
    failing_seconds: float | None


class SideWork(TypedDict):
    """Counts that are put into their table, or moments of gates into tables. ``error``: why they
    are not, for ``failing_seconds``; null: they are."""

    error: str | None
    failing_seconds: float | None


def side_work(figures: object, now_ms: int) -> SideWork | None:
    """``figures``: the answer of who does it, None where nobody has to."""
    if not isinstance(figures, SideFigures):
        return None
    since = figures.failing_since
    seconds = None if since is None else max(0.0, now_ms / 1000 - since)
    return {"error": figures.error, "failing_seconds": seconds}


def cuts_of(figures: object, unfit: str | None, now_ms: int) -> Cuts | None:
    """``figures``: the answer of who makes them, None where nothing is cut. ``unfit``: why the log
    can't be."""
    if not isinstance(figures, CutFigures):
        return None
    last, since = figures.last, figures.failing_since
    return {
        "number": None if last is None else last.number,
        "boundary": None if last is None else last.boundary,
        "seconds_ago": None if last is None else max(0.0, now_ms / 1000 - last.number),
        "source_ms": None if last is None else last.time_ms,
        "tables": 0 if last is None else len(last.versions),
        "left_out": {} if last is None else dict(sorted(last.left_out.items())),
        "error": unfit or figures.error,
        "failing_seconds": None if since is None or unfit else max(0.0, now_ms / 1000 - since),
    }

"""What each code point of the basic plane is to a server, in and between names without quotes.

The verdicts are in ``code_points.txt`` as ranges: of a letter the name holds it, a blank ends a
word and is no part of one, and ``other`` is what is neither. They are read by the tokenizer's
test and asked of servers again by ``make test-soak``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

FILE = Path(__file__).with_name("code_points.txt")
PLACES = {
    "first": ("1 AS {}q", "{}q"),
    "middle": ("1 AS q{}z", "q{}z"),
    "last": ("1 AS q{}", "q{}"),
    "between": ("1 AS{}q", "AS{}q"),
}
"""A column with the code point in each place, and its name if that is a letter."""

POINTS = [point for point in range(0x10000) if not 0xD800 <= point < 0xE000]
AT_ONCE = 500

Verdicts = dict[int, str]
Ask = Callable[[str], Sequence[str] | None]
"""The names of a statement's columns, None where it is refused."""


def verdict(place: str, character: str, name: str) -> str:
    """What a code point is by the name that came of it."""
    if name == PLACES[place][1].format(character):
        return "letter"
    return "blank" if name == "q" else "other"


def asked(ask: Ask, place: str) -> Verdicts:
    """Ask a server for each code point, many in a statement, fewer where one is refused."""
    found: Verdicts = {}
    waiting = [POINTS[at : at + AT_ONCE] for at in range(0, len(POINTS), AT_ONCE)]
    while waiting:
        points = waiting.pop()
        pieces = [PLACES[place][0].format(chr(point)) for point in points]
        # One more column: neither a comment nor an end of the statement looks like a blank.
        names = ask(f"SELECT {', '.join([*pieces, '2 AS z'])}")
        if names is not None and len(names) == len(points) + 1:
            named = zip(points, names, strict=False)
            found |= {point: verdict(place, chr(point), name) for point, name in named}
        elif len(points) == 1:
            found[points[0]] = "other"
        else:
            middle = len(points) // 2
            waiting += [points[:middle], points[middle:]]
    return found


def written(place: str, verdicts: Verdicts) -> list[str]:
    """Lines of the file: place, first and last code point of a range, verdict."""
    lines: list[tuple[int, int, str]] = []
    for point in POINTS:
        said = verdicts[point]
        if lines and lines[-1][2] == said and lines[-1][1] == point - 1:
            lines[-1] = (lines[-1][0], point, said)
        else:
            lines.append((point, point, said))
    return [f"{place} {first:04X} {last:04X} {said}" for first, last, said in lines]

"""Which rows of a sink are made to differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from tests.live.comparison import Found
from tests.live.schema import Name
from tests.live.sinks import Difference, Plant, Stored

_SPARE = 1_000_000
"""Keys from here on are no row's of the source."""


def planned(
    rng: Random, source: Mapping[Name, Found], there: Mapping[Name, Stored]
) -> Sequence[Difference]:
    """One to three rows of each table that has a key of one column of whole numbers."""
    return [
        one
        for name, table in source.items()
        if name in there
        for one in _of_table(rng, name, table, there[name])
    ]


def _of_table(rng: Random, name: Name, table: Found, stored: Stored) -> Iterator[Difference]:
    names, kinds = [n for n, _ in table.columns], dict(table.columns)
    if len(table.key) != 1 or kinds[table.key[0]] != "number":
        return
    spelled = {column.lower(): column for column in stored.columns}
    place = names.index(table.key[0])
    rows = [row for row in table.rows if _is_whole(row[place])]
    for number, row in enumerate(rng.sample(rows, min(len(rows), rng.choice((1, 2, 3))))):
        filled = [
            column
            for column, value in zip(names, row, strict=True)
            if value is not None and column not in table.key and column.lower() in spelled
        ]
        what = rng.choice(list(Plant) if filled else (Plant.MISSING, Plant.EXTRA))
        column = spelled[rng.choice(filled).lower()] if filled else ""
        value = int(str(row[place]))
        yield Difference(
            name, what, spelled[table.key[0].lower()], value, column, _SPARE + number,
            stored.columns,
        )  # fmt: skip


def _is_whole(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isdigit()

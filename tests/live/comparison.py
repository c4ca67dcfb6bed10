"""Compares a table of the source with the lake's, row by row. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.live.values import Text, from_lake, from_source

SHOWN = 6
"""So many differences of a table are shown."""

Row = tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A table of the source: its columns with their kinds, and its rows as they are printed."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    key: tuple[str, ...] = ()

    def with_kinds(self, others: Mapping[str, str]) -> Found:
        """The same, some kinds read as others."""
        columns = tuple((name, others.get(kind, kind)) for name, kind in self.columns)
        return replace(self, columns=columns)


def differences(
    source: Found,
    lake: Sequence[Mapping[str, object]] | None,
    names: Sequence[str],
    keeps: bool = True,
) -> list[str]:
    """Say what differs; nothing where the lake's rows are the source's.

    ``lake``: the rows, by columns of ``names``; None where there is no such table, which equals one
    without rows. ``keeps``: dropped columns are kept, so those that only the lake has don't count.
    """
    wanted = Counter(
        tuple(from_source(kind, text) for (_, kind), text in zip(source.columns, row, strict=True))
        for row in source.rows
    )
    if lake is None:
        return ["the lake has no such table"] if wanted else []
    by_lower = {name.lower(): name for name in names}
    missing = {name for name, _ in source.columns if name.lower() not in by_lower}
    kept = [place for place, (name, _) in enumerate(source.columns) if name in missing]
    # A column shows in the lake with the first row behind it: until then it is NULL in all.
    if any(row[place] is not None for row in wanted for place in kept):
        return [f"column {name} is missing among {sorted(names)}" for name in sorted(missing)]
    wanted_names = {name.lower() for name, _ in source.columns}
    if lake and not keeps and (left := sorted(by_lower.keys() - wanted_names)):
        return [f"column {by_lower[name]} is still there" for name in left]
    there = Counter(
        tuple(
            from_lake(kind, row[by_lower[name.lower()]]) if name.lower() in by_lower else None
            for name, kind in source.columns
        )
        for row in lake
    )
    return _told(source, wanted - there, there - wanted)


def _told(source: Found, lost: Counter[Row], more: Counter[Row]) -> list[str]:
    """Rows of one key on both sides as the cells that differ, others whole."""
    names = [name for name, _ in source.columns]
    places = [names.index(name) for name in source.key]
    spare: dict[Row, list[Row]] = {}
    for row in more.elements():
        spare.setdefault(tuple(row[place] for place in places), []).append(row)
    lines = []
    for row in lost.elements():
        key = tuple(row[place] for place in places)
        other = spare[key].pop() if places and spare.get(key) else None
        if other is None:
            lines.append(f"only the source has {_shown(names, row)}")
            continue
        cells = [
            f"{name} is {theirs!r}, not {ours!r}"
            for name, ours, theirs in zip(names, row, other, strict=True)
            if ours != theirs
        ]
        lines.append(f"{_shown(list(source.key), key)}: {', '.join(cells)}")
    lines += [f"only the lake has {_shown(names, row)}" for rows in spare.values() for row in rows]
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"{len(lines)} differences in all"]


def _shown(names: Sequence[str], row: Row) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))

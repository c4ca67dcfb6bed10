"""Writes rows in as few writes as can be where the database refuses some of them for good. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from actors.contract.ports import TargetRefused, WaitsForRows
from daemon.databases.port import Key

MOST_REFUSED = 100
"""Rows that are refused, before the others are left: the pipeline stands meanwhile."""

PASSES = 5
"""Attempts at rows that are refused, as long as others get through."""

FOR_GOOD = (TargetRefused, WaitsForRows)
"""What a database says of rows. A foreign key's other row may come, but nobody waits for it."""


@dataclass(slots=True)
class Written:
    """``refused``: rows that were not written, and why. ``left``: rows that nobody tried."""

    done: list[Key] = field(default_factory=list)
    refused: dict[Key, str] = field(default_factory=dict)
    left: list[Key] = field(default_factory=list)


def written(keys: Sequence[Key], write: Callable[[Sequence[Key]], None]) -> Written:
    """Write the rows of the keys: all at once, then by halves where that is refused.

    Rows that are refused are tried again as long as others get through: one may need another.
    Raises what ``write`` does, but for refusals.
    """
    ended, todo = Written(), list(keys)
    for _ in range(PASSES):
        before = len(ended.done)
        ended.refused, ended.left = {}, []
        _write(todo, write, ended)
        todo = [*ended.refused, *ended.left]
        if not todo or len(ended.done) == before:
            break
    return ended


def _write(keys: Sequence[Key], write: Callable[[Sequence[Key]], None], ended: Written) -> None:
    if len(ended.refused) >= MOST_REFUSED:
        ended.left += keys
        return
    try:
        write(keys)
    except FOR_GOOD as error:
        if len(keys) == 1:
            ended.refused[keys[0]] = str(error)
            return
    else:
        ended.done += keys
        return
    half = len(keys) // 2
    _write(keys[:half], write, ended)
    _write(keys[half:], write, ended)

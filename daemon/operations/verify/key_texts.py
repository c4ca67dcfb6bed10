"""Keys of decoded changes as canonical texts, to be found among those of the source. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, Changes
from changes.routes.shaping.masking import masked
from changes.sql.forms import Form
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import Pair
from daemon.operations.verify.in_flight import LOOKS, Ends, KeyLooks, Lookout, NotPassed, looked
from databases.base.port import Key
from offsets.position import TopicPartition

# Follows rows that change their key while a table is compared. Pure but for its ports.

MOST_MOVES = 10_000
"""Keys that are followed in one table: with more of them it is undecided."""


class Move(NamedTuple):
    """A row's key before and after a change that does not tell the whole row."""

    old: Key
    new: Key


class MovesUnknown(Exception):
    """A stretch of the log can't be read: one line."""


class KeyMoves(Protocol):
    """What the log tells of keys that change. One thread's."""

    def settled(self) -> Ends:
        """Wait until the log has all that is visible now; a partition in which nothing comes is
        taken to have it. Raises NotPassed."""
        ...

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        """The moves between these places, in each partition's order. Raises MovesUnknown."""
        ...


class Follower(Lookout, KeyMoves, Protocol):
    """What it takes to follow keys, and to look at them. One thread's."""


@dataclass(frozen=True, slots=True)
class Trail:
    """How far keys are followed. ``at``: the log is looked through up to there. ``watched``: keys
    from which a row may have taken wrong values since; None: any."""

    at: Ends
    watched: frozenset[Key] | None = None
    rounds: int = 0
    ended: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {
            "at": {str(source): offset for source, offset in self.at.items()},
            "watched": None if self.watched is None else sorted(map(list, self.watched)),
            "rounds": self.rounds,
            "ended": self.ended,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Trail:
        """Read back what ``document`` gave."""
        watched = document["watched"]
        return cls(
            {TopicPartition.parse(name): int(at) for name, at in document["at"].items()},
            None if watched is None else frozenset(map(tuple, watched)),
            int(document["rounds"]),
            bool(document["ended"]),
        )


def follow(trail: Trail, follower: Follower) -> tuple[Trail, KeyLooks]:
    """Look at the keys that rows have come to since; the trail has ended where there are none."""
    return follow_by(trail, follower, lambda keys: looked(keys, follower))


def follow_by(
    trail: Trail, log: KeyMoves, look: Callable[[Sequence[Key]], KeyLooks]
) -> tuple[Trail, KeyLooks]:
    """The same, by other looks."""
    seen = KeyLooks()
    try:
        ends = log.settled()
        found = _reached(log.moves(trail.at, ends), trail.watched)
    except (NotPassed, MovesUnknown) as reason:
        seen.undecided[()] = f"keys that changed meanwhile are not known: {reason}"
        return replace(trail, ended=True), seen
    after = Trail(ends, frozenset(found), trail.rounds + 1, ended=not found)
    if not found:
        return after, seen
    if len(found) > MOST_MOVES or after.rounds > LOOKS:
        seen.undecided |= dict.fromkeys(found[:MOST_MOVES], "its row comes from other keys")
        return replace(after, ended=True), seen
    return after, look(found)


def _reached(moves: Sequence[Move], watched: Collection[Key] | None) -> list[Key]:
    """The keys that rows came to from these, over whatever others: the partitions' moves have no
    common order."""
    if watched is None:
        return list(dict.fromkeys(new for _, new in moves))
    found, before = dict[Key, None](), -1
    while len(found) > before:
        before = len(found)
        found |= {new: None for old, new in moves if old in watched or old in found}
    return list(found)


class NoText(Exception):
    """A key's value has no text of the form: nobody can tell which row it is."""


def keys_of(changes: Changes, keys: Sequence[Pair], wanted: FittedTable) -> set[Key]:
    """The target's keys of all rows, old keys of moved rows included. ``keys``: those of the
    comparison, in the order of ``wanted.source.keys``. Raises NoText."""
    return set(_keys(changes.table, "", keys, wanted))


def moves_of(changes: Changes, keys: Sequence[Pair], wanted: FittedTable) -> list[Move]:
    """The rows that came from another key without all that the target has of them: what they lack
    comes from the old key's row. Raises NoText."""
    table = changes.table
    if FROM not in table.column_names:
        return []
    rows = table.filter(pc.and_(pc.is_valid(table[FROM]), pc.invert(_are_whole(table, wanted))))
    olds, news = _keys(rows, FROM_PREFIX, keys, wanted), _keys(rows, "", keys, wanted)
    return [Move(old, new) for old, new in zip(olds, news, strict=True)]


def _are_whole(table: pa.Table, wanted: FittedTable) -> pa.Array:
    """Of each row whether it has each of the source's columns that the target is made of."""
    names = {name.lower(): name for name in table.column_names}
    whole = pa.repeat(pa.scalar(True), table.num_rows)
    for column in (one.column.name.lower() for one in wanted.columns):
        if column not in names:
            return pa.repeat(pa.scalar(False), table.num_rows)
        has = HAS_PREFIX + names[column]
        if has in table.column_names:
            whole = pc.and_(whole, table[has])
    return whole


def _keys(table: pa.Table, prefix: str, keys: Sequence[Pair], wanted: FittedTable) -> list[Key]:
    """Of each row the target's key, of columns with this prefix."""
    names = {name.lower(): name for name in table.column_names}
    shape, columns = wanted.route.shape, []
    for pair, key in zip(keys, wanted.source.keys, strict=True):
        name = names.get((prefix + key).lower())
        if name is None:
            raise NoText(key)
        column, mask = table.column(name), shape.mask_of(key)
        if mask is not None:
            columns.append(masked(column, mask, shape.salt).to_pylist())
        else:
            columns.append([key_text(pair.source.form, value) for value in column.to_pylist()])
    return list(zip(*columns, strict=True))


def key_text(form: Form | None, value: object) -> str:
    """A value of the lake as a text of the form. Raises NoText."""
    match value:
        case bool() if form in (Form.BOOLEAN, Form.WHOLE):
            return "1" if value else "0"
        case int() if form in (Form.WHOLE, Form.BOOLEAN):
            return str(value)
        case Decimal() if form in (Form.WHOLE, Form.DECIMAL):
            return f"{value:f}" if form is Form.DECIMAL else f"{value.to_integral_value():f}"
        case bytes() if form in (Form.HEX, Form.STRIPPED):
            return value.hex()
        case str():
            return f"{value}.000000" if form is Form.LOCAL and len(value) == 19 else value
        case datetime() if form is Form.INSTANT and value.tzinfo is not None:
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")
        case datetime() if form is Form.LOCAL and value.tzinfo is None:
            return f"{value:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")
        case date() if form is Form.DATE and not isinstance(value, datetime):
            return value.isoformat()
        case _:
            raise NoText(f"{type(value).__name__} as {form}")

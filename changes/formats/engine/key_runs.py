"""Tracks key changes to a key whose own row has not moved away yet.

MySQL checks keys row by row, so a row only ever moves to a free key. Oracle and others check at
the statement's end: ``SET id = 3 - id`` exchanges two keys by two updates, ``SET id = id + 1``
moves each row to the key of the next. Read one by one, the second update would delete the row that
the first one moved there. Its old image shows that it is another row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from msgspec import UNSET

from changes.formats.engine.layout import Refused
from changes.model.types import widen

Key = tuple[tuple[str, object], ...]
"""A key's columns, in small letters and in order, with their values: columns that are redefined
may come in another order."""


def run_key(columns: Iterable[tuple[str, object]]) -> Key:
    """Make the key of a row from its columns and their values."""
    return tuple(sorted((name.lower(), value) for name, value in columns))


Values = Mapping[str, tuple[object, pa.DataType | None]]
"""A row's values without its key, by column in small letters, UNSET for unknown ones, each with its
column's type, where it is known: where that is redefined, the same value may be spelled in another
way."""

PARTIAL_ROW = (
    "a row leaves its key after another row has taken it, and only some of its columns are known"
)


MOVES_ALONE = (
    "one record changes the key, and each key has a partition of its own (partitioned_by): whether "
    "the old key's other changes come before it is not known. Have the source write a delete and "
    "an insert, as Debezium does, or keep the table in one partition"
)


class OfKeys(Refused):
    """A message needs changes of another key, which may be in another partition."""


class Arrived(NamedTuple):
    """The values of a row that moved to another key. ``left`` is the old image with which it left
    its former key."""

    values: Values
    left: object


@dataclass(slots=True)
class KeyRun:
    """Neighbouring changes of keys, with no other row between them.

    ``arrived`` are the keys that rows have moved to in this run. ``left`` is the old image with
    which the last row left its key, where such an image may hold the key alone. ``next_`` is the
    number that the next row must have; the decoder numbers the rows. Each lane has a run of its
    own: what comes of other lanes between two changes is of other keys.

    ``whole``: the run does not begin amid others' changes, before which nothing was seen: after a
    start, or what another member has written. ``cut``: a row left a key while that was not so, and
    another one may have come there before. ``alike``: a row left a key to which one that looks the
    same had moved: it may be that row, moved twice, or another one, whose key that has taken.

    ``deleted`` is the record key of a delete, where that is the lane's latest record. ``earlier``:
    the run as a call before left it, for what is read again from there.
    """

    arrived: dict[Key, Arrived] = field(default_factory=dict)
    left: object = None
    next_: int = -1
    last_offset: int = -1
    deleted: bytes | None = None
    whole: bool = False
    cut: bool = False
    alike: bool = False
    earlier: KeyRun | None = None

    def begun(self, offsets: Sequence[int]) -> KeyRun:
        """The run for a call's records, whose rows are numbered from 0: it goes on over calls."""
        goes_on = bool(offsets) and offsets[0] > self.last_offset
        last = offsets[-1] if offsets else -1
        deleted = self.deleted if goes_on else None
        if goes_on and self.next_ == 0:
            return KeyRun(dict(self.arrived), self.left, 0, last, deleted, self.whole)
        return KeyRun({}, None, 0, last, deleted)

    def ended(self, number: int) -> KeyRun:
        """The run as the next call finds it, after so many rows."""
        goes_on = self.next_ == number
        arrived, left = (self.arrived, self.left) if goes_on else ({}, None)
        whole = self.whole or not goes_on
        return KeyRun(arrived, left, 0, self.last_offset, self.deleted, whole)

    def moves(
        self,
        number: int,
        old: Key,
        before: Values,
        new: Key,
        after: Values,
        image: object = None,
        *,
        free: bool = False,
    ) -> bool:
        """Move row ``number`` from one key to another; whether that deletes the old key's row.

        It does not where another row has moved there before. Raises Refused where the moved row is
        partial then: the columns that it lacks are lost. ``image``, ``free``: see ``leaves``.
        """
        ends = self.leaves(number, old, before, image, free=free)
        if not ends and any(value is UNSET for value, _ in after.values()):
            raise Refused(PARTIAL_ROW)
        self.arrives(number, new, after)
        return ends

    def leaves(
        self,
        number: int,
        old: Key,
        before: Values,
        image: object = None,
        *,
        free: bool = False,
    ) -> bool:
        """The first half of ``moves``, where the two halves come in separate records.

        ``image`` is the old image without its key, None where it certainly holds the row's values.
        Otherwise values that were not sent may be replaced by anything (0 and "" in Debezium's
        records of PostgreSQL), alike in all of a table's images: if the row that moved here left
        its former key with the same image, this is that row. ``free``: the source's rows only ever
        move to a free key.
        """
        if number != self.next_:
            self._break()
        self.next_ = number
        self.left = image
        there = self.arrived.get(old)
        self.cut |= there is None and not (self.whole or free)
        known = image is None or there is None or there.left != image
        if there is not None and known and _differ(there.values, before):
            return False
        self.alike |= there is not None and image is None and not free
        self.arrived.pop(old, None)
        return True

    def arrives(self, number: int, new: Key, after: Values) -> None:
        """The second half; ``number`` is that of the first."""
        if number != self.next_:
            self._break()
        self.next_ = number + 1
        self.arrived[new] = Arrived(after, self.left)

    def _break(self) -> None:
        """Another row has come since the last change of a key."""
        self.arrived.clear()
        self.whole = True


KeyRuns = Mapping[int, KeyRun]
"""The run of each lane, by partition."""


REMEMBERED = 1_000
"""Keys of a run at most that is remembered for what is read again."""


def resumed(runs: KeyRuns, partition: int, held: int, start: int) -> KeyRuns:
    """The runs where a lane goes on at ``start``, and is done up to ``held``.

    What another member has written ends its run. What was not written may come again: its run is
    what it was then.
    """
    run = runs.get(partition)
    while run is not None and run.last_offset >= start:
        run = run.earlier
    if run is None or run.last_offset < held:
        run = KeyRun(last_offset=held)
    oldest = run
    while oldest.earlier is not None and oldest.last_offset > held:
        oldest = oldest.earlier
    oldest.earlier = None  # nothing comes again from before what is written
    return {**runs, partition: run}


def kept(runs: KeyRuns, partition: int, run: KeyRun) -> KeyRuns:
    """The runs with that of a lane as a call has left it."""
    before = runs.get(partition)
    run.earlier = before if before is None or len(before.arrived) <= REMEMBERED else None
    return {**runs, partition: run}


def _differ(there: Values, before: Values) -> bool:
    """Whether these are certainly not one row's values.

    Null in an old image may be a value that was not sent (partial images), so it proves nothing;
    nor does a value of a column that is of another type now.
    """
    for name in there.keys() & before.keys():
        (a, was), (b, now) = there[name], before[name]
        told = a is not UNSET and b is not UNSET and b is not None
        if told and a != b and (was is None or now is None or _go_together(was, now)):
            return True
    return False


def _go_together(one: pa.DataType, other: pa.DataType) -> bool:
    return (widen(one, other) or widen(other, one)) is not None

"""Publishing writes of several tables at once, where the catalog is a database.

Each write ends in metadata that would be the table's next. By itself it is committed; here it is
kept until all are there. Then one transaction moves all pointers, each on condition that it still
is where it was: the compare-and-set of one table, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from actors.contract.ports import OneFailed
from changes.model.errors import LostRace, SinkAway, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.pointers import (
    Pointer,
    is_locked,
    move,
    moved,
    transaction,
    was_rolled_back,
    written,
)
from sparkwriter.iceberg.publish import (
    MAIN,
    SWAP_ATTEMPTS,
    NotLanded,
    add_attempt,
    discard,
    never_began,
    remove_files,
    why,
)
from sparkwriter.iceberg.refusals import reasons
from sparkwriter.session.java_api import Java, JavaFailure, reason

Change = Callable[[Java], object]
"""Of metadata that is being built."""


class PendingCommit(Protocol):
    """A write that is made and not published yet."""

    table: LakeTable

    @property
    def head(self) -> int:
        """The snapshot that main will show."""
        ...

    def change(self) -> Change:
        """What makes it main's, of the metadata that the catalog has now. Raises LostRace where
        main has moved."""
        ...

    def landed(self) -> None:
        """It is published."""
        ...

    def given_up(self) -> None:
        """It is not, nor ever will be: its files go."""
        ...


class PendingAttempt:
    """What statements committed to an attempt."""

    def __init__(
        self, table: LakeTable, attempt: LakeTable, expected: int, also: Change | None
    ) -> None:
        self.table, self._attempt, self._expected, self._also = table, attempt, expected, also
        self.head = int(attempt.made_since(expected)[-1].snapshotId())

    def change(self) -> Change:
        """See ``PendingCommit``."""
        self.table.refresh()
        if (main := self.table.head(MAIN)) != self._expected:
            raise LostRace(f"main moved from snapshot {self._expected} to {main} meanwhile")
        return partial(add_attempt, self.table, self._attempt, self._expected, self._also)

    def landed(self) -> None:
        """See ``PendingCommit``."""

    def given_up(self) -> None:
        """See ``PendingCommit``."""
        discard(self.table, self._attempt, self._expected)


@dataclass(slots=True)
class _Move:
    """One table's part. ``pointer``: where its metadata is written, on the base that was seen."""

    target: TargetName
    kept: PendingCommit
    base: Java = None
    change: Change | None = None
    pointer: Pointer | None = None

    def look(self) -> None:
        """On what the catalog has now."""
        self.change, self.pointer = self.kept.change(), None
        self.base = self.kept.table.metadata

    def ready(self) -> Pointer:
        """Its metadata, in a file."""
        if self.pointer is None:
            assert self.change is not None
            table = self.kept.table
            builder = table.jvm.org.apache.iceberg.TableMetadata.buildFrom(self.base)
            self.change(builder)
            self.pointer = written(table, self.base, builder.build())
        return self.pointer

    def forget(self) -> None:
        """No pointer shows that metadata, nor ever will."""
        if self.pointer is not None:
            remove_files(self.kept.table, [self.pointer.place])
            self.pointer = None


class Moves:
    """The writes of one step, on one writer's thread."""

    def __init__(self) -> None:
        self._moves: list[_Move] = []
        self._may_land = False

    def keep(self, target: TargetName, kept: PendingCommit) -> int:
        """A write is to be published with the others; gives its snapshot. Raises LostRace."""
        self._moves.append(one := _Move(target, kept))
        one.look()
        return kept.head

    def give_up(self) -> None:
        """Nothing is published: remove what was written, unless it may yet be."""
        if self._may_land:
            return
        for one in self._moves:
            one.forget()
            one.kept.given_up()

    def publish(self, wait_s: float) -> None:
        """All of them, or none: raises OneFailed, with whose fault it was.

        A table whose metadata changed beside main is looked at again, and all are tried again.
        ``wait_s``: how long a lock is waited for.
        """
        self._moves.sort(key=lambda one: one.target)
        for _ in range(SWAP_ATTEMPTS if self._moves else 0):
            for one in self._moves:
                with _blamed(one.target):
                    one.ready()
            if (late := self._moved(wait_s)) is None:
                self._landed()
                return
            with _blamed(late.target):
                late.forget()
                late.look()
        if self._moves:
            raise OneFailed(None) from NotLanded("others keep changing the tables")

    def _moved(self, wait_s: float) -> _Move | None:
        """Move all pointers at once. Gives the one that another was faster with, if any.

        What the catalog's database refuses before the commit it would refuse each of them: none
        can be written, and none is at fault.
        """
        try:
            with transaction(self._moves[0].kept.table) as connection:
                for one in self._moves:
                    if not _is_moved(connection, one, wait_s):
                        connection.rollback()
                        return one
                self._may_land = True
                connection.commit()
        except SinkUnavailable as error:
            raise OneFailed(None) from error
        except JavaFailure as error:
            kind = SinkUnavailable if self._may_land else SinkAway
            took_back = never_began(error) or was_rolled_back(error)
            self._may_land = self._may_land and not took_back
            if not (self._may_land and self._shows()):
                raise OneFailed(None) from kind(f"the catalog takes no commit: {why(error)}")
        return None

    def _shows(self) -> bool:
        """Whether a commit without a reply has landed: one table's snapshot tells it of all."""
        for one in self._moves:
            with _blamed(None, one.target):
                one.kept.table.refresh()
                if one.kept.table.holds(one.kept.head):
                    return True
        return False

    def _landed(self) -> None:
        for one in self._moves:
            moved(one.ready())
            one.kept.landed()


def _is_moved(connection: Java, one: _Move, wait_s: float) -> bool:
    """As ``move``. Raises OneFailed where a lock is in the way of that one."""
    try:
        return move(connection, one.ready(), wait_s)
    except JavaFailure as error:
        if not is_locked(error):
            raise
        text = f"another session holds its row of the catalog's database ({reason(error)})"
        raise OneFailed(one.target) from SinkUnavailable(f"{one.target}: {text}")


@contextmanager
def _blamed(target: TargetName | None, named: TargetName | None = None) -> Iterator[None]:
    """What goes wrong inside is the target's fault, or that of none, in ``named``."""
    try:
        of = target or named
        assert of is not None
        with reasons(of):
            yield
    except (Fenced, SinkUnavailable, TargetRefused) as error:
        raise OneFailed(target) from error

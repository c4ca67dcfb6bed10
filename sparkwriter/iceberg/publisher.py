"""When a writer's tables show what is written: at once, or all of them in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actors.contract.writes import StagedBatch
from sparkwriter.iceberg.direct import PendingUpdate, Update, publish_update
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.publish import publish_attempt
from sparkwriter.iceberg.together import Change, Moves, PendingAttempt, PendingCommit


class Publisher:
    """One writer's, on its thread. ``tidy`` keeps a table small once its write is published."""

    def __init__(self, tidy: Callable[[StagedBatch, Seen], None]) -> None:
        self._tidy = tidy
        self._moves: Moves | None = None
        self._untidy: list[tuple[StagedBatch, Seen]] = []

    def publish(
        self, seen: Seen, batch: StagedBatch, made: Update | LakeTable, also: Change | None
    ) -> int:
        """Make what is written main's, in one commit; gives its snapshot. Raises as
        ``publish_update``."""
        if self._moves is not None:
            self._untidy.append((batch, seen))
            return self._moves.keep(batch.target, _kept(seen, made, also))
        if isinstance(made, Update):
            head = publish_update(seen.table, seen.main, made, also)
        else:
            head = publish_attempt(seen.table, made, seen.main, also)
        self._tidy(batch, seen)
        return head

    @contextmanager
    def together(self, wait_s: float) -> Iterator[None]:
        """What is published inside is so at the end, in one step. Raises as ``Moves.publish``."""
        moves, self._untidy = Moves(), []
        self._moves = moves
        try:
            yield
            self._moves = None
            moves.publish(wait_s)
        except BaseException:
            moves.give_up()
            raise
        finally:
            self._moves = None
        for batch, seen in self._untidy:
            self._tidy(batch, seen)


def _kept(seen: Seen, made: Update | LakeTable, also: Change | None) -> PendingCommit:
    if isinstance(made, Update):
        return PendingUpdate(seen.table, seen.main, made, also)
    return PendingAttempt(seen.table, made, seen.main, also)

"""The sink's side: writes that fail, lose their reply, outlive their time, lose a race."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from actors.contract import messages as msg
from actors.contract.writes import StagedBatch, TargetState
from changes.model.errors import LostRace, SinkUnavailable, TargetRefused, WaitsForName
from changes.model.model import TargetName
from offsets.fence import Fenced, Straggler
from tests.simulation.sink import FakeSink
from tests.simulation.staging import Content


class Writers:
    """Carries out what writers ask of their sink, as badly as it may go."""

    def __init__(self, sink: FakeSink, rng: random.Random, fails: float, refusals: int) -> None:
        """``fails``: the share of calls that fail in a way that passes. ``refusals``: how often a
        target comes to be refused."""
        self._sink = sink
        self._rng = rng
        self._fails = fails
        self._refusals = refusals
        self._refused: set[str] = set()
        self._away: str | None = None
        self._zombies: list[tuple[str, Callable[[], None]]] = []

    def open(self, target: TargetName) -> object:
        """Read a target."""
        if target.sink == self._away or self._rng.random() < self._fails:
            return msg.Failed(target, msg.FailureKind.RETRY, "away")
        return msg.Opened(target, self._sink.open(target))

    def publish(self, batch: StagedBatch, rows: Content | None) -> object:
        """Publish a batch: how it ended."""
        try:
            return msg.Published(self._write(batch, rows), 0.0)
        except LostRace as error:
            kind, reason = msg.FailureKind.RACED, str(error)
        except WaitsForName as error:
            return msg.Failed(batch.target, msg.FailureKind.WAITS, str(error), error.other)
        except SinkUnavailable as error:
            kind, reason = msg.FailureKind.RETRY, str(error)
        except TargetRefused as error:
            kind, reason = msg.FailureKind.REFUSED, str(error)
        except Straggler as error:
            kind, reason = msg.FailureKind.STRAGGLER, str(error)
        except Fenced as error:
            kind, reason = msg.FailureKind.FENCED, str(error)
        return msg.Failed(batch.target, kind, reason)

    def _write(self, batch: StagedBatch, rows: Content | None) -> TargetState:
        """A failure may come before the publish, or after it: then only the reply is lost.

        Or the write goes on after its time is up: a zombie, which publishes later if it still can.
        Or somebody publishes while it is under way: such a zombie, or another writer's upkeep.
        """
        name = str(batch.target)
        if batch.target.sink == self._away:
            raise SinkUnavailable("away")
        self._refuse(name)
        fate = self._rng.random() * 4
        if fate < self._fails:
            raise SinkUnavailable("away")
        if fate < self._fails * 2:
            self._zombies.append((name, self._sink.prepared(batch, rows)))
            raise SinkUnavailable("timed out")
        if fate < self._fails * 3:
            self._sink.prepared(batch, rows)
            self.land(name)
            raise LostRace(f"{name}: main moved")
        state = self._sink.publish(batch, rows)
        if fate < self._fails * 4:
            raise SinkUnavailable("the reply is lost")
        return state

    def _refuse(self, name: str) -> None:
        if self._refusals > 0 and self._rng.random() < 0.1:
            self._refusals -= 1
            self._refused.add(name)
        if name in self._refused:
            raise TargetRefused("it can't hold that")

    def land(self, name: str | None = None) -> None:
        """A zombie ends now, of that target if one is named: it publishes, or finds main moved."""
        ripe = [place for place, (of, _) in enumerate(self._zombies) if name in (None, of)]
        if ripe:
            _, publish = self._zombies.pop(self._rng.choice(ripe))
            with suppress(Fenced, LostRace, SinkUnavailable, TargetRefused):
                publish()

    def come_and_go(self) -> None:
        """A sink goes away, or is back."""
        self._away = None if self._away else self._rng.choice(("lake", "log"))

    def heal_all(self) -> None:
        """Everything can be written again, and stays so."""
        self._refused.clear()
        self._refusals, self._away = 0, None

    def heal(self) -> None:
        """One of the targets can be written again."""
        if self._refused:
            self._refused.remove(self._rng.choice(sorted(self._refused)))

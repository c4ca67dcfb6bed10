"""Runs configured gates: each is looked at, and each way is told, on a thread of its own.

So a log that does not answer holds up no other gate, and a webhook that hangs no other way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from functools import partial

from actors.runtime.aside import Aside
from actors.runtime.backoff import Waits
from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.admin.events.delivery import RETRY_BASE_S, RETRY_MAX_S
from daemon.cli.gate.keeper import GateKeeper
from daemon.cli.gate.ways import NotDelivered, Way, ways_of
from daemon.config.config import Config
from offsets.gate_record import Notice

LOOK_EVERY_S = 10.0
"""Positions are recorded every 5 s."""

RECORD_EVERY_S = 1.0
"""While many are delivered: what was taken since the last record is sent again after a crash."""

ONCE_WITHIN_S = 30.0
"""How long ``--once`` waits for those who are told."""


class Delivery:
    """Tells one gate's notifications by one way. One thread's."""

    def __init__(self, keeper: GateKeeper, way: Way) -> None:
        self._keeper, self._way = keeper, way
        self._waits = Waits(RETRY_BASE_S, RETRY_MAX_S, random.random)
        self._failures = 0

    @property
    def wait_s(self) -> float:
        """Until it is tried again, if nobody asks before."""
        return self._waits.after(self._failures) if self._failures else RETRY_MAX_S

    def deliver(self) -> None:
        """Have all that waits taken, up to the first that is not."""
        try:
            while notices := self._keeper.pending(self._way.name):
                self._some([*notices])
        except (NotDelivered, OSError) as error:
            self._failures += 1
            self._keeper.failed(self._way.name, reason_of(error))
        else:
            self._failures = 0
            self._keeper.failed(self._way.name, None)

    def _some(self, notices: list[Notice]) -> None:
        """As many as are taken before it is recorded. Raises NotDelivered, OSError."""
        taken: list[str] = []
        due = time.monotonic() + RECORD_EVERY_S
        try:
            for first in range(0, len(notices), self._way.most):
                batch = notices[first : first + self._way.most]
                try:
                    self._way.deliver(batch)
                except NotDelivered as error:
                    taken += (each.id for each in batch[: error.taken])
                    raise
                taken += (each.id for each in batch)
                if time.monotonic() >= due:
                    break
        finally:
            self._keeper.taken(self._way.name, taken)


class GateRunner:
    """All gates that were asked for. The folder's lock is held meanwhile."""

    def __init__(self, config: Config, gates: Collection[str], tell: Callable[[str], None]) -> None:
        self._keepers = [GateKeeper(config, gate, tell, _now_ms) for gate in gates]
        self._deliveries = {
            keeper: [Delivery(keeper, way) for way in ways_of(config, keeper.gate)]
            for keeper in self._keepers
        }
        self._rounds: list[Periodic] = []
        self._shown = Periodic(
            "gate-shown", self._show_looking, LOOK_EVERY_S, "gates", "gate_look_not_shown"
        )

    def start(self) -> None:
        """Look, and tell, until the process ends."""
        for keeper, deliveries in self._deliveries.items():
            told = [
                Periodic("gate-told", each.deliver, partial(_wait, each), "gates", "gate_not_told")
                for each in deliveries
            ]
            look = partial(_look, keeper, told)
            looks = Periodic("gate-look", look, LOOK_EVERY_S, "gates", "gate_not_looked_at")
            self._rounds += [*told, looks]
        for each in (*self._rounds, self._shown):
            each.start()

    def close(self) -> None:
        """Begin nothing more. What is under way is not awaited."""
        for each in (*self._rounds, self._shown):
            each.close()

    def _show_looking(self) -> None:
        for keeper in self._keepers:
            keeper.show_looking()

    def once(self) -> bool:
        """Look at all once, and tell what can be told in time: whether nothing that is due is shut,
        and all is told."""
        self._shown.start()
        looks = [Aside(keeper.look) for keeper in self._keepers]
        good = [look.result() for look in looks]
        self._shown.close()
        every = [each for deliveries in self._deliveries.values() for each in deliveries]
        told, end = [Aside(each.deliver) for each in every], time.monotonic() + ONCE_WITHIN_S
        for one in told:
            one.ended(max(0.0, end - time.monotonic()))
        for keeper in self._keepers:
            keeper.show()
        return all(good) and not any(
            keeper.pending(way) for keeper in self._keepers for way in keeper.section.ways
        )


def _look(keeper: GateKeeper, told: Collection[Periodic]) -> None:
    keeper.look()
    for way, each in zip(keeper.section.ways, told, strict=True):
        if keeper.is_idle(way):
            each.wake()


def _wait(delivery: Delivery) -> float:
    return delivery.wait_s


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""The programs that run beside the daemon, from before anything asks them until all else has ended.

The embedded broker is the first of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from actors.runtime.program_keeper import KeptProgram, ProgramFigures, ProgramKeeper
from actors.runtime.programs import STOP_WITHIN_S
from collector.broker.embedded import EmbeddedBroker
from collector.broker.home import BrokerHome, BrokerUnusable
from collector.broker.program import NAME as BROKER
from daemon.app.startup import Unusable
from daemon.config.config import Config
from sources.opening import open_cluster

_TRIES = 3
"""A broker that ends so often while the daemon starts won't come by itself: it has a reason."""

_LOOK_EVERY_S = 1.0


class Programs:
    """Starts them, keeps them, ends them. The main thread opens and closes; figures are anybody's.

    Whatever ends the daemon ends them, too.
    """

    def __init__(self, config: Config) -> None:
        """Nothing is made yet."""
        self._config = config
        self._keeper: ProgramKeeper | None = None
        self._in_good_order = True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Under the state directory's lock. Raises Unusable where the broker can't be had."""
        programs = self._made()
        if not programs:
            yield
            return
        self._keeper = keeper = ProgramKeeper(programs)
        keeper.open()
        try:
            if self._config.broker.embedded:
                self._await_broker(keeper, programs[0].start_within_s)
            yield
        finally:
            if self._in_good_order:
                keeper.close(STOP_WITHIN_S)

    def abandon(self) -> None:
        """Wait for none of them at the end: they are killed with this process."""
        self._in_good_order = False

    def figures(self) -> list[ProgramFigures]:
        """How each is, in the order of their starts. Any thread."""
        return [] if self._keeper is None else self._keeper.figures()

    def _made(self) -> list[KeptProgram]:
        """What the configuration asks for, in the order of their starts."""
        config = self._config
        if not config.broker.embedded:
            return []
        try:
            home = BrokerHome(config.daemon.state_dir, config.broker.port)
            home.make()
            config.adopt_broker(home.client_settings())
            folder, topics = config.daemon.state_dir, config.embedded_topics
            return [EmbeddedBroker(config.broker, folder, topics, open_cluster)]
        except BrokerUnusable as error:
            raise Unusable(str(error)) from error

    def _await_broker(self, keeper: ProgramKeeper, within_s: float) -> None:
        """Nothing of a pipeline can be looked at without it, so its start is waited for."""
        deadline = time.monotonic() + within_s
        while not keeper.await_up(BROKER, _LOOK_EVERY_S):
            broker = next(each for each in keeper.figures() if each.name == BROKER)
            given_up = broker.state == "down" and broker.starts >= _TRIES
            if given_up or time.monotonic() > deadline:
                raise Unusable(f"[broker] does not start: {broker.why}")

"""A PostgreSQL whose standby takes over, with the collector's slot: what was read decides.

The standby is a copy of the server's folder, so its slot is where the primary's was then, as one
with ``failover`` is, which servers have from 17 on.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.postgres import Postgres
from tests.collector.running import Running, rows, running
from tests.collector.sources.test_postgres import made, source
from tests.databases.base.conftest import folder

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


class Pair:
    """A server, and a copy of it that takes its place."""

    def __init__(self, where: Path) -> None:
        self._data, self._copy = where / "server" / "data", where / "server" / "copy"
        self.server = Postgres(where / "server")
        self.server.start()

    def copy(self) -> None:
        """What the standby has; the server goes on."""
        self.server.program.kill()
        subprocess.run(["cp", "-a", self._data, self._copy], check=True)
        self.server.start()

    def take_over(self) -> None:
        """The standby, not promoted yet, at the server's address."""
        self.server.program.kill()
        subprocess.run(["rm", "-r", self._data], check=True)
        self._copy.rename(self._data)
        (self._data / "standby.signal").touch()
        self.server.start()

    def promote(self) -> None:
        assert self.server.ask("SELECT pg_promote()").rows == (("t",),)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with folder() as where:
        found = Pair(where)
        yield found
        found.server.program.kill()


def sleep(it: Running) -> None:
    shop = it.collectors.of("shop")
    assert shop is not None
    shop.hands.pause()
    it.until("paused", lambda _: it.rest.state("binlogd-shop").task is None)


def wake(it: Running) -> None:
    shop = it.collectors.of("shop")
    assert shop is not None
    shop.hands.resume()


FILLER = "SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 1000))) FROM generate_series"


@pytest.mark.parametrize("behind", [True, False])
def test_a_standby_that_takes_over(
    tmp_path: Path, broker: DevBroker, pair: Pair, name: str, behind: bool
) -> None:
    """One that lacks what was read has another history, however far its log has come since: the
    collector stops by name. One that has it all goes on, each row once."""
    server = pair.server
    made(server, name)
    with running(tmp_path, broker, source(server, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not server.run(name, ["INSERT INTO t VALUES (1, 1)"])
        it.until("running", lambda _: keys(broker, name) == [1])
        sleep(it)
        pair.copy()
        if behind:
            wake(it)
            assert not server.run(name, ["INSERT INTO t VALUES (2, 2)"])
            it.until("running", lambda _: keys(broker, name) == [1, 2])
            sleep(it)
        pair.take_over()
        if not behind:
            wake(it)
            it.until("source away", lambda f: "a standby answers" in f["reason"])
        pair.promote()
        assert not server.run(name, ["INSERT INTO t VALUES (3, 3)", f"{FILLER}(1, 5000)"])
        if behind:
            wake(it)
            assert "was promoted" in it.until("lost")["reason"]
        else:
            it.until("running", lambda _: keys(broker, name) == [1, 3])


def keys(broker: DevBroker, name: str) -> list[int]:
    return [one["after"]["id"] for one in rows(broker, name, "t")]

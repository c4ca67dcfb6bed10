"""A MySQL whose replica takes over: another server, at the same address, with the same GTIDs.

The replica is a copy of the server's folder with an identity of its own: it has the transactions of
that moment, and numbers its own under its own UUID, as a promoted replica does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.programs import ProgramMissing
from demo.broker import DevBroker
from demo.servers.mysql import MySql
from tests.collector.running import Running, records, rows, running
from tests.collector.sources.test_mysql import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


class Pair:
    """A server, and its replica's data beside it."""

    def __init__(self, where: Path) -> None:
        self._data, self._copy = where / "data", where / "copy"
        self.server = MySql(where)
        self.server.start()
        user = ["CREATE USER reader@'%' IDENTIFIED BY 'first'", "GRANT ALL ON *.* TO reader@'%'"]
        assert not self.server.run(user)

    def replicate(self) -> None:
        """The replica has all that is there now; the server goes on."""
        self.server.program.kill()
        subprocess.run(["cp", "-a", self._data, self._copy], check=True)
        (self._copy / "auto.cnf").unlink()
        self.server.start()

    def take_over(self) -> None:
        self.server.program.kill()
        subprocess.run(["rm", "-r", self._data], check=True)
        self._copy.rename(self._data)
        self.server.start()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    try:
        found = Pair(tmp_path / "mysql")
    except ProgramMissing as error:
        pytest.skip(str(error))
    yield found
    found.server.program.kill()


def keys(broker: DevBroker, name: str) -> list[int]:
    return [one["after"]["id"] for one in rows(broker, name, "t")]


def read(it: Running, broker: DevBroker, name: str, wanted: list[int]) -> None:
    it.until("running", lambda _: keys(broker, name) == wanted)


@pytest.mark.parametrize("behind", [True, False])
def test_a_replica_that_takes_over(
    tmp_path: Path, broker: DevBroker, pair: Pair, name: str, behind: bool
) -> None:
    """In mid-stream. One that has all that was read is read on, each row once, by its own files;
    one that lacks some has another history: the collector stops by name."""
    server = pair.server
    made(server, name)
    with running(tmp_path, broker, source(server), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not server.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        read(it, broker, name, [1])
        pair.replicate()
        if behind:
            # The first is over for the reader once the second is there.
            assert not server.run([
                f"INSERT INTO {name}.t VALUES (2, 2)", f"INSERT INTO {name}.t VALUES (3, 3)"
            ])  # fmt: skip
            read(it, broker, name, [1, 2, 3])
        pair.take_over()
        assert not server.run([
            f"INSERT INTO {name}.t VALUES (8, 8)", f"INSERT INTO {name}.t VALUES (9, 9)"
        ])  # fmt: skip
        if behind:
            assert "another history" in it.until("lost")["reason"]
            assert keys(broker, name) == [1, 2, 3]
            return
        read(it, broker, name, [1, 8, 9])
        servers = {
            one["source"]["gtid"].partition(":")[0]
            for one in records(broker, name)
            if one.get("op") == "c"
        }
        assert len(servers) == 2

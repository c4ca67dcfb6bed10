"""Tables of a lake that say through when a gate has found them complete."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker
from sparkwriter.iceberg.tags import VALID_THROUGH
from tests.daemon.cli.counts.test_held import daemon
from tests.daemon.cli.gate.gate_world import GateWorld, at
from tests.integration.rig import Rig

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class LakeWorld(GateWorld):
    """Its table is in a lake."""

    def __init__(self, folder: Path, broker: DevBroker) -> None:
        super().__init__(folder, broker)
        self.catalog = folder / "catalog.db"
        lake = 'kind = "iceberg"\n[sink.lake.catalog]\ntype = "jdbc"\n'
        lake += f'uri = "jdbc:sqlite:{self.catalog}"\nwarehouse = "{folder}/warehouse"\n'
        text = self.config.read_text().replace('kind = "sqlite"\npath = "lake.db"\n', lake)
        self.config.write_text(text.replace("[daemon]\n", "[daemon]\ncommit_interval_s = 0.5\n"))

    def said(self) -> dict[str, str] | None:
        """By gate; None: there is no table."""
        asked = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 't'"
        try:
            with closing(sqlite3.connect(self.catalog)) as catalog:
                row = catalog.execute(asked).fetchone()
        except sqlite3.OperationalError:
            return None
        if row is None:
            return None
        properties = json.loads(Path(row[0].removeprefix("file:")).read_text())["properties"]
        return {
            name.removeprefix(VALID_THROUGH): value
            for name, value in properties.items()
            if name.startswith(VALID_THROUGH)
        }

    def until(self, reached: Callable[[], bool], within_s: float = 90) -> None:
        deadline, pause = monotonic() + within_s, Event()
        while not reached():
            assert monotonic() < deadline, self.said()
            pause.wait(0.2)

    def reload(self) -> None:
        done = CliRunner().invoke(app, ("reload", "-c", str(self.config)))
        assert done.exit_code == 0, done.output + done.stderr

    def shown(self) -> object:
        """What status says of who has tables say it."""
        done = CliRunner().invoke(app, ("status", "--json", "-c", str(self.config)))
        return json.loads(done.stdout)["pipelines"][0]["valid_through"]

    def sent_through(self, minute: int) -> None:
        """A transaction in each minute up to this one."""
        for each in range(self.minutes, minute):
            self.log.at(each, 5).transaction(f"t{each}", "I")
        self.minutes = minute
        self.grow()

    minutes = 0


def test_a_table_says_what_its_gate_has_closed(rig: Rig, tmp_path: Path) -> None:
    """Once a reload has asked for it; what closes while no daemon runs, by the next one, behind
    kill -9."""
    world = LakeWorld(tmp_path, rig.broker)
    world.sent_through(3)
    process = daemon(world)
    world.until(lambda: world.said() == {})
    world.gate("g", valid_through=True)
    world.until(lambda: "waits for a change" in world.once()[1])
    assert world.said() == {}
    plain = world.config.read_text().replace("valid_through = true", "valid_through = false")
    assert world.shown() is None
    world.reload()
    world.until(lambda: world.said() == {"g": at(2)})
    assert world.shown() == {"error": None, "failing_seconds": None}
    wanted = world.config.read_text()
    world.config.write_text(plain)
    world.reload()
    assert world.shown() is None
    world.config.write_text(wanted)
    world.reload()
    world.sent_through(5)
    world.until(lambda: world.once()[0] == 75 and f"{at(4)}: " in world.once()[1])
    process.kill()
    process.wait(20)
    process = daemon(world)
    world.until(lambda: world.said() == {"g": at(4)})
    assert world.command("forget", "g").exit_code == 0
    world.until(lambda: world.said() == {})
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0

"""Changes that come late into a closed partition: it is reopened, and closes anew."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from demo.broker import DevBroker
from offsets.counts import RowCounts
from tests.daemon.admin.events.hook import Hook
from tests.daemon.cli.counts.test_broker import TARGET
from tests.daemon.cli.counts.test_held import busy, daemon, finish, until_folded
from tests.daemon.cli.gate.gate_world import GateWorld, at

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> GateWorld:
    made = GateWorld(tmp_path, store_broker)
    made.config.write_text(
        made.config.read_text() + 'counts = "lake.binlogd.counts"\nkeys = ["id"]\n'
    )
    return made


def fold(world: GateWorld) -> None:
    """A daemon writes what there is, and its counts come into their table."""
    process = daemon(world)
    until_folded(world, process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said


def late(world: GateWorld) -> None:
    """The commit of one that began in minute 1, and stood for an hour, is written and counted."""
    world.log.clock.delay_ms = 3_600_000
    world.log.at(1, 30).transaction("late", "I")
    world.log.clock.delay_ms = 500
    world.log.at(62).transaction("behind", "I")
    world.grow()
    finish(world)
    fold(world)


def test_late_changes_reopen_a_partition(world: GateWorld) -> None:
    """The mark goes, those who are told get it in order, and the next version has other counts. A
    look without news reads no log again."""
    hook = Hook()
    world.gate(success=str(world.marks), webhook=hook.address, counts=True, reopen_for="31d")
    world.log = busy()
    world.grow()
    finish(world)
    status, said = world.once()
    assert status == 75
    assert "counts: " in said  # they are not in their table yet
    assert "changes are not counted in the target" in said
    fold(world)
    assert world.once()[0] == 75
    begun = [(at(minute), 1) for minute in range(3)]
    assert world.closed()[:3] == begun
    first = hook.got[0]
    assert first["tables"] == {TARGET: {"inserted": 12, "updated": 120, "deleted": 12}}
    assert first["counts"] is True

    seen = len(hook.got)
    world.once()
    assert len(hook.got) == seen
    late(world)
    _, said = world.once()
    assert f"{at(1)}: reopened: other counts of {TARGET}" in said
    told = [(one["id"], one["type"]) for one in hook.got[seen:] if one["from"] == at(1)]
    assert told == [(f"g:{at(1)}:1:reopened", "reopened"), (f"g:{at(1)}:2", "closed")]
    assert dict(world.closed())[at(1)] == 2
    (now,) = (each for each in world.recorded().closed if each.version == 2)
    assert now.counts == {TARGET: RowCounts(13, 120, 12)}
    seen = len(hook.got)
    _, said = world.once()
    assert "reopened" not in said
    hook.close()

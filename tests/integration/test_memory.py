"""Bounded everywhere, isolated per target: a sink that hangs, measured."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from actors.contract.messages import CaughtUp, PipelineFailed
from actors.contract.ports import BatchWriter
from actors.contract.writes import StagedBatch, TargetState
from actors.staging.folder import StagingFolder
from actors.staging.process import StageProcesses
from changes.model.model import TargetName
from daemon.app.supervisor import EventQueue
from daemon.app.topology import PipelineParts, Topology
from daemon.config.config import formats
from daemon.config.file import load
from daemon.state.offset_file import FileStore
from daemon.state.spills.file import SpillFolder
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from sources.kafka.admin import Admin
from sources.kafka.source import KafkaSource
from sources.kafka.start_resolver import PositionResolver
from tests.integration.rig import Rig, canal

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]
BUDGET = 32 << 20
STAGED = 24 << 20


@pytest.mark.timeout(400)
def test_memory_stays_within_its_bound_while_every_write_hangs(rig: Rig) -> None:
    """Under full load and with no write ending, the process holds its budget and reading stops.

    What decoding and staging take for a moment comes on top: in all less than twice the budget
    and 96 MiB, with a stream of eight times the budget waiting.
    """
    fill(rig)
    # Folded, a batch would shrink.
    found = stalled(rig, p=rig.pipeline(mode="append"))
    assert found["peak"] - found["before"] < 2 * BUDGET + (96 << 20), found


@pytest.mark.timeout(900)
def test_idle_pipelines_lend_a_busy_one_what_they_do_not_need(rig: Rig) -> None:
    """Beside two idle ones it holds more than three quarters of the budget for staged files; with
    its even share as a quota, a third. Together it is never more than there is, but for the pieces
    that were being staged."""
    fill(rig)
    rig.create_topic(f"{rig.topic}-idle")
    idle = {
        name: rig.pipeline(
            topics=[f"{rig.topic}-idle"], include=[f"{rig.db}{name}.*"], group=f"g-{rig.db}-{name}",
            target=f"lake.{name}.{{table}}",
        )
        for name in ("q", "r")
    }  # fmt: skip
    staged = {}
    for kind, quota in (("lent", None), ("own", {"memory": 0.333})):
        busy = rig.pipeline(mode="append", target="lake.busy.{table}", quota=quota, group=kind)
        found = stalled(rig, p=busy, **idle)
        staged[kind] = found["staged"]
        print(f"{kind}: {found}")
        shutil.rmtree(rig.folder / "state")
        shutil.rmtree(rig.folder / "staging")
    assert 0.75 * STAGED < staged["lent"] < 1.25 * STAGED, staged
    assert staged["own"] < 0.5 * STAGED, staged


def fill(rig: Rig) -> None:
    """Eight times the budget."""
    random = Random(1)  # no two rows are alike, or the staged files would shrink to nothing
    sent = 0
    while sent < 8 * BUDGET:
        rows = [
            canal(
                f"{rig.db}.t{i % 6}",
                "INSERT",
                [{"id": i, "name": random.randbytes(150).hex(), "qty": i}],
            )
            for i in range(6000)
        ]
        rig.produce(*rows)
        sent += sum(map(len, rows))


def stalled(rig: Rig, **pipelines: dict[str, Any]) -> dict[str, Any]:
    """What the flow holds when it stands."""
    config = rig.write_config(**pipelines)
    text = config.read_text() + f"[memory]\nbudget_bytes = {BUDGET}\nstaged_bytes = {STAGED}\n"
    config.write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.integration.stalled_flow", str(config)],
        cwd=CHECKOUT, text=True, capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["standing"], "the flow did not come to a stand"
    return found


class OneHangs:
    """A sink in which the writes of one target never end, and the others' are counted."""

    def __init__(self, hanging: str) -> None:
        self.hanging = hanging
        self.never = threading.Event()
        self.rows: dict[str, int] = {}
        self.states: dict[str, TargetState] = {}

    def open(self, target: TargetName, recorded: object = None) -> TargetState:
        return self.states.get(str(target), TargetState())

    def write(self, batch: StagedBatch) -> TargetState:
        name = str(batch.target)
        if name == self.hanging:
            self.never.wait()
        self.rows[name] = self.rows.get(name, 0) + batch.changes
        marks = {source: span.through for source, span in batch.lanes.items()}
        state = self.states[name] = TargetState(batch.schema, batch.mode, marks, "1")
        return state


@pytest.mark.timeout(120)
def test_one_hanging_target_leaves_the_others_fresh(rig: Rig) -> None:
    """The others are applied to the last message; the frontier stays below the hanging one's."""
    hanging = f"lake.{rig.db}.t0"
    sink = OneHangs(hanging)
    messages = [
        canal(f"{rig.db}.t{i % 4}", "INSERT", [{"id": i, "name": "n" * 200, "qty": i}])
        for i in range(40_000)
    ]
    rig.produce(*messages)
    config = load(rig.write_config())
    others = {f"lake.{rig.db}.t{i}": 10_000 for i in (1, 2, 3)}
    events, seen = EventQueue(), threading.Event()

    class Watch:
        """Sets the event when the others are complete."""

        def open(self, target: TargetName, recorded: object = None) -> TargetState:
            return sink.open(target)

        def write(self, batch: StagedBatch) -> TargetState:
            state = sink.write(batch)
            if {name: sink.rows.get(name) for name in others} == others:
                seen.set()
            return state

    watch: BatchWriter = Watch()
    config.daemon.state_dir.mkdir(parents=True)
    folder = StagingFolder(config.daemon.staging_folder, "run-one")
    stagers = StageProcesses(formats(config), folder, config.daemon.processors)
    topology = Topology(config, "run-one", stagers, events)
    topology.start_writers(lambda: {"lake": watch})
    recorded = Snapshot("p", config.group("p"))
    store = FileStore(config.daemon.state_dir, "p")
    store.start()
    spills = SpillFolder(config.daemon.state_dir, "p")
    ends = Admin(config.kafka).topic_ends([rig.topic])
    resolver = PositionResolver(
        config.kafka, recorded.group, config.pipeline["p"], store.get, False
    )
    source = KafkaSource(config.kafka, [rig.topic], recorded.group, resolver, "p")
    topology.start_pipeline(PipelineParts("p", source, store, recorded, spills, until=ends))
    assert seen.wait(60), sink.rows
    saved = store.get().snapshot
    frontier = saved.partitions[TopicPartition(rig.topic, 0)].frontier if saved else 0
    assert frontier == 0
    sink.never.set()
    end = time.monotonic() + 60
    while not isinstance(event := events.get(end - time.monotonic()), CaughtUp):
        assert time.monotonic() < end, "not caught up after the hanging target came back"
        assert not isinstance(event, PipelineFailed), event
    assert sink.rows == {**others, hanging: 10_000}
    topology.stop()
    stagers.close()
    folder.close()

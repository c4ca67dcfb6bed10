"""A process of its own for the memory test: the real flow on the real broker, a sink that hangs.

The first pipeline is measured; the others run beside it.

Prints one JSON line: resident memory before and at its peak, what was read, what is staged.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from confluent_kafka import Consumer

from actors.contract.effects import LaneMessages, Stage
from actors.contract.ports import Stager
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch, TargetState
from actors.staging.folder import StagingFolder
from actors.staging.process import StageProcesses
from changes.model.model import Mode, TargetName
from changes.routes.routing import TargetRoute
from daemon.app.supervisor import EventQueue
from daemon.app.topology import PipelineParts, Topology
from daemon.config.config import Config, formats
from daemon.config.file import load
from daemon.state.offset_file import FileStore
from daemon.state.spills.file import SpillFolder
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from sources.kafka.source import KafkaSource
from sources.kafka.start_resolver import PositionResolver
from tests.integration.rig import canal


class Stalled:
    """A sink whose writes never end."""

    def __init__(self) -> None:
        self.never = threading.Event()

    def open(self, target: TargetName, recorded: object = None) -> TargetState:
        return TargetState()

    def write(self, batch: StagedBatch) -> TargetState:
        self.never.wait()
        raise AssertionError("it never ends")


class Held:
    """Notes when the flow stands: a processor leaves its mailbox waiting, and reading pauses."""

    def __init__(self) -> None:
        self.standing = threading.Event()
        self._held = self._paused = False

    def __call__(self, logger: object, level: str, event: dict[str, object]) -> dict[str, object]:
        match event["event"]:
            case "hold" | "flow" as said:
                # The first hold may come while targets are being opened: that one passes.
                self._held = said == "hold" and bool(event["staged_bytes"])
            case "reading_paused" | "reading_resumed" as said:
                self._paused = said == "reading_paused"
        if self._held and self._paused:
            self.standing.set()
        raise structlog.DropEvent


def peak_bytes(*children: int) -> int:
    """The most memory that was resident, here and in the decoding processes.

    Not rusage's figure: that one is inherited by exec.
    """
    peak = 0
    for pid in ("self", *children):
        (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        peak += int(line) * 1024
    return peak


def warm_up(stager: Stager) -> None:
    """Libraries are loaded by a first batch, so they are no part of the load."""
    route = TargetRoute(TargetName("lake", "warm", "up"), Mode.UPSERT, None)
    message = canal("warm.up", "INSERT", [{"id": 1, "name": "n", "qty": 1}])
    stager.stage(
        Stage(route, (), (LaneMessages(TopicPartition("warm", 0), Messages.of([0], [message])),))
    )


def parts(config: Config, name: str, settings: Mapping[str, Any]) -> PipelineParts:
    """One pipeline, as a start makes it."""
    recorded, section = Snapshot(name, config.group(name)), config.pipeline[name]
    store = FileStore(config.daemon.state_dir, name)
    store.start()
    spills = SpillFolder(config.daemon.state_dir, name)
    resolver = PositionResolver(dict(settings), recorded.group, section, store.get, False)
    source = KafkaSource(settings, section.topics, recorded.group, resolver, name)
    return PipelineParts(name, source, store, recorded, spills)


def main(path: str) -> None:
    config = load(Path(path))
    held = Held()
    structlog.configure(processors=[held])
    name, *idle = config.pipeline
    config.daemon.state_dir.mkdir(parents=True)
    folder = StagingFolder(config.daemon.staging_folder, "run-stalled")
    stagers = StageProcesses(formats(config), folder, config.daemon.processors)
    topology = Topology(config, "run-stalled", stagers, EventQueue())
    topology.start_writers(lambda: {"lake": Stalled()})
    settings = {"queued.max.messages.kbytes": config.queue_kbytes(name), **config.kafka}
    # Metadata, threads and libraries are loaded by a first look, so they are no part of the load.
    warm = Consumer({**settings, "group.id": "warm"})
    warm.list_topics(timeout=20)
    warm.close()
    for number in range(config.daemon.processors):
        warm_up(stagers.of(name, number))
    for other in idle:
        topology.start_pipeline(parts(config, other, settings))
    before = peak_bytes(*stagers.pids)
    begun = time.monotonic()
    topology.start_pipeline(parts(config, name, settings))
    standing = held.standing.wait(180)
    staged = sum(file.stat().st_size for file in config.daemon.staging_folder.rglob("*.parquet"))
    print(
        json.dumps(
            {
                "standing": standing, "before": before, "peak": peak_bytes(*stagers.pids),
                "staged": staged, "seconds": time.monotonic() - begun,
            }
        ),
        flush=True,
    )  # fmt: skip
    sys.stdout.flush()
    import os

    os._exit(0)  # the writers hang, as they should


if __name__ == "__main__":
    main(sys.argv[1])

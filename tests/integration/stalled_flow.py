"""A process of its own for the memory test: the real flow on the real broker, a sink that hangs.

Prints one JSON line: resident memory before and at its peak, what was read, what is staged.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import structlog
from confluent_kafka import Consumer

from actors.ports import StagedBatch, TargetState
from changes.model import TargetName
from daemon.config_file import load
from daemon.kafka_positions import PositionResolver
from daemon.kafka_source import KafkaSource
from daemon.offset_file import OffsetFile
from daemon.service import EventQueue
from daemon.staging import StagingFolder
from daemon.topology import PipelineParts, Topology
from offsets.snapshot import Snapshot


class Stalled:
    """A sink whose writes never end."""

    def __init__(self) -> None:
        self.never = threading.Event()

    def open(self, target: TargetName) -> TargetState:
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


def peak_bytes() -> int:
    """The most memory that was resident. Not rusage's figure: that one is inherited by exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("this kernel does not tell")


def main(path: str) -> None:
    config = load(Path(path))
    held = Held()
    structlog.configure(processors=[held])
    (name,) = config.pipeline
    section = config.pipeline[name]
    config.daemon.state_dir.mkdir(parents=True)
    stager = StagingFolder(config.daemon.staging_dir, "run-stalled")
    topology = Topology(config, "run-stalled", stager, EventQueue())
    topology.start_writers(lambda: {"lake": Stalled()})
    recorded = Snapshot(name, config.group(name))
    settings = {"queued.max.messages.kbytes": config.memory.queue_kbytes(1), **config.kafka}
    store = OffsetFile(config.daemon.state_dir, name)
    resolver = PositionResolver(settings, recorded.group, section, store.load, False)
    # Metadata, threads and libraries are loaded by a first look, so they are no part of the load.
    warm = Consumer({**settings, "group.id": "warm"})
    warm.list_topics(timeout=20)
    warm.close()
    before = peak_bytes()
    source = KafkaSource(settings, section.topics, recorded.group, resolver, name)
    begun = time.monotonic()
    topology.start_pipeline(PipelineParts(name, source, store, recorded))
    standing = held.standing.wait(180)
    staged = sum(file.stat().st_size for file in config.daemon.staging_dir.rglob("*.parquet"))
    print(
        json.dumps(
            {
                "standing": standing, "before": before, "peak": peak_bytes(), "staged": staged,
                "seconds": time.monotonic() - begun,
            }
        ),
        flush=True,
    )  # fmt: skip
    sys.stdout.flush()
    import os

    os._exit(0)  # the writers hang, as they should


if __name__ == "__main__":
    main(sys.argv[1])

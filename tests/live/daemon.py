"""binlogd as a child: one pipeline for each topic, into a lake of local files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.positions.offset_file import OffsetFile
from tests.live.program import LiveError, Program
from tests.live.told import Told, read

_UP_WITHIN_S = 180.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline's name, topic and further keys of its section."""

    name: str
    topic: str
    more: Mapping[str, Any]


class Daemon:
    """One daemon; its folders stay when it is killed. One thread's."""

    def __init__(self, folder: Path, bootstrap: str, pipelines: Sequence[Pipeline]) -> None:
        """``folder`` also holds the lake: ``catalog.db`` and ``warehouse``. Nothing runs yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._config = folder / "binlogd.toml"
        self._config.write_text(configuration(folder, bootstrap, pipelines))
        self.log = folder / "log" / "binlogd.log"
        self.log.parent.mkdir(exist_ok=True)
        self.log.touch()
        self.program = Program("binlogd", folder / "binlogd.stderr")

    def start(self) -> None:
        """Start it and return when its pipelines have begun; raises LiveError."""
        before = self._running()
        self.launch()
        self.program.await_ready(lambda: self._running() > before, _UP_WITHIN_S)

    def launch(self) -> None:
        """Start it; it is up some time later."""
        self.program.launch([sys.executable, "-m", "daemon.cli", "run", "--config", self._config])

    def _running(self) -> int:
        return sum('"event": "running"' in line for line in self._lines())

    def _lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def told(self, pipeline: str) -> Told:
        """What it has said of a pipeline and its tables."""
        snapshot = OffsetFile(self.folder / "state", pipeline).load().snapshot
        targets = snapshot.targets if snapshot is not None else {}
        marks = {target: mark.rows_may_differ for target, mark in targets.items()}
        return read(self._lines(), pipeline, marks)

    def frontier(self, pipeline: str) -> int:
        """Below this offset all of the pipeline's partition is applied."""
        snapshot = OffsetFile(self.folder / "state", pipeline).load().snapshot
        found = snapshot.partitions.values() if snapshot is not None else ()
        return max((state.frontier for state in found), default=0)

    def check(self) -> None:
        """Raise LiveError where it has ended by itself and no pipeline says why."""
        if not self.program.runs and "pipeline_failed" not in self.log.read_text():
            raise LiveError(f"binlogd has ended: {self.program.tail()}")


def configuration(folder: Path, bootstrap: str, pipelines: Sequence[Pipeline]) -> str:
    """The TOML file: quick to start, quick to write, so that checkpoints don't wait."""
    lines = [
        "[daemon]", f'state_dir = "{folder}/state"', f'staging_dir = "{folder}/staging"',
        "commit_interval_s = 0.3", "drain_timeout_s = 60", "processors = 2",
        "[log]", 'format = "json"', f'file = "{folder}/log/binlogd.log"',
        "[batch]", "max_age_s = 0.2", "[kafka]", f'"bootstrap.servers" = "{bootstrap}"',
        "[spark]", "writers = 2", "warm_up = false",
        'conf."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"',
        "[sink.lake]", 'kind = "iceberg"', "[sink.lake.catalog]", 'type = "jdbc"',
        f'uri = "jdbc:sqlite:{folder}/catalog.db"', '"jdbc.schema-version" = "V1"',
        f'warehouse = "{folder}/warehouse"',
    ]  # fmt: skip
    for pipeline in pipelines:
        lines += [
            f"[pipeline.{pipeline.name}]", f'topics = ["{pipeline.topic}"]',
            'target = "lake.{database}.{table}"',
            *(f"{key} = {json.dumps(value)}" for key, value in pipeline.more.items()),
        ]  # fmt: skip
    return "\n".join(lines) + "\n"

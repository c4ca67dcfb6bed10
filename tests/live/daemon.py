"""binlogd as a child: one pipeline for each topic, into the sinks of the run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.operations.engine.record import Job
from daemon.operations.engine.store import JobStore
from daemon.state.offset_file import OffsetFile
from demo.servers.apicurio import Apicurio
from tests.live.commands import Command
from tests.live.program import LiveError, Program
from tests.live.told import Told, read
from tests.live.topic import Place

_UP_WITHIN_S = 180.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline's name, topic or pattern of topics, sink and further keys of its section.

    ``database``: the URL, user and password of the source, for jobs; without one there are none.
    ``collector``: further lines of its section, where binlogd's own writes the topic;
    ``publication``: of what it reads.
    """

    name: str
    topic: str
    more: Mapping[str, Any]
    sink: str = "lake"
    database: tuple[str, str, str] | None = None
    collector: Sequence[str] | None = None
    publication: str = ""


class Daemon:
    """One daemon; its folders stay when it is killed. One thread's."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        pipelines: Sequence[Pipeline],
        sinks: Sequence[str],
    ) -> None:
        """``sinks``: the lines of their sections. Nothing runs yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._config = folder / "binlogd.toml"
        self._config.write_text(configuration(folder, bootstrap, pipelines, sinks))
        self.log = folder / "log" / "binlogd.log"
        self.log.parent.mkdir(exist_ok=True)
        self.log.touch()
        self.program = Program("binlogd", folder / "binlogd.stderr")
        self._commands = 0

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

    def frontiers(self, pipeline: str) -> Mapping[Place, int]:
        """By topic and partition: below this offset all of the pipeline is applied."""
        snapshot = OffsetFile(self.folder / "state", pipeline).load().snapshot
        found = snapshot.partitions if snapshot is not None else {}
        return {(at.topic, at.partition): state.frontier for at, state in found.items()}

    def command(self, *words: str) -> Command:
        """Have an operator's command begin."""
        self._commands += 1
        place = self.folder / "commands" / str(self._commands)
        place.parent.mkdir(exist_ok=True)
        return Command(self._config, words, place)

    def jobs(self) -> Sequence[Job]:
        """All that it has recorded, oldest first."""
        return JobStore(self.folder / "state").load().jobs

    def check(self) -> None:
        """Raise LiveError where it has ended by itself and no pipeline says why."""
        if not self.program.runs and "pipeline_failed" not in self.log.read_text():
            raise LiveError(f"binlogd has ended: {self.program.tail()}")


def configuration(
    folder: Path, bootstrap: str, pipelines: Sequence[Pipeline], sinks: Sequence[str]
) -> str:
    """The TOML file: quick to start, quick to write, so that checkpoints don't wait."""
    lines = [
        "[daemon]", f'state_dir = "{folder}/state"', f'staging_dir = "{folder}/staging"',
        "commit_interval_s = 0.3", "drain_timeout_s = 60", "processors = 2",
        "exit_when_stopped = true",
        "[log]", 'format = "json"', f'file = "{folder}/log/binlogd.log"',
        "[batch]", "max_age_s = 0.2", "[kafka]", f'"bootstrap.servers" = "{bootstrap}"',
        '"topic.metadata.refresh.interval.ms" = 1000',
        "[load]", "margin_s = 0.5", "chunk_rows = 1000", "attempts_per_hour = 6", *sinks,
    ]  # fmt: skip
    # Rounds share a broker: in a group of before, that round's connectors would go on.
    lines += ["[connect]", f'group = "connect-{folder.name}"', "heap_mb = 1024"]
    for pipeline in pipelines:
        fed = f"topics = [{json.dumps(pipeline.topic)}]"
        lines += [
            f"[pipeline.{pipeline.name}]",
            f'collector = "{pipeline.name}"' if pipeline.collector is not None else fed,
            f'target = "{pipeline.sink}.{{database}}.{{table}}"',
            *(f"{key} = {json.dumps(value)}" for key, value in pipeline.more.items()),
        ]  # fmt: skip
        if pipeline.database is not None:
            url, user, password = pipeline.database
            lines += [
                f'database = "{pipeline.name}"', f"[pipeline.{pipeline.name}.verify]",
                "margin_s = 0.5", "wait_s = 60", f"[database.{pipeline.name}]", f'url = "{url}"',
                f'user = "{user}"', f'password = "{password}"', "connections = 2",
                *[f'publication = "{pipeline.publication}"'] * bool(pipeline.publication),
            ]  # fmt: skip
        if pipeline.collector is not None:
            lines += [
                f"[collector.{pipeline.name}]", f'database = "{pipeline.name}"',
                f'topic = "{pipeline.topic}"', "heartbeat_s = 1",
                *pipeline.collector,
            ]  # fmt: skip
    return "\n".join(lines) + "\n"


def registries(registry: Apicurio | None) -> list[str]:
    """The sections of one registry, under both of its APIs."""
    if registry is None:
        return []
    urls = {"confluent": registry.confluent_url, "apicurio": registry.root}
    return [
        line
        for kind, url in urls.items()
        for line in (f"[registry.{kind}]", f'kind = "{kind}"', f'url = "{url}"')
    ]

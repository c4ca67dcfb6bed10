"""A whole daemon over a log in memory: everything real except the broker, so it runs in a second.

The log keeps its records while daemons come and go. Each pipeline reads its topics from where its
stores say, alone in its group.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from actors.contract import messages as msg
from actors.contract.ports import RecordSource, SourceListener
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.config.config import Config
from daemon.config.file import load
from daemon.config.log_level import LogLevels
from daemon.operations.engine.desk import asked
from daemon.state import control
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from settings.exit import Exit
from sources.base.port import LogRecord, Start
from sparkwriter.sinks import ConfiguredSinks
from tests.integration.rig import canal
from tests.sources.fake_source import FakeSource

T = TypeVar("T")

WITHIN_S = 60.0


class Log:
    """Topics of one partition each, shared by all pipelines and daemons of a test."""

    def __init__(self) -> None:
        self.rebalances = False
        """Whether each group takes its partitions away at every other poll, and gives them back."""
        self._lock = threading.Lock()
        self._records: dict[str, list[bytes]] = {}

    def produce(self, topic: str, *values: bytes) -> None:
        """Append."""
        with self._lock:
            self._records.setdefault(topic, []).extend(values)

    def read(self, topic: str, first: int, most: int) -> list[bytes]:
        """From an offset on."""
        with self._lock:
            return self._records.get(topic, [])[first : first + most]

    def end(self, topic: str) -> int:
        """Where it ends."""
        with self._lock:
            return len(self._records.get(topic, []))

    def source(self, config: Config, pipeline: str) -> LoggedSource:
        """For ``sources.opening.ADAPTERS``."""
        places = [TopicPartition(topic, 0) for topic in config.pipeline[pipeline].topics]
        ends = {place: Watermarks(0, self.end(place.topic)) for place in places}
        return LoggedSource(ends, log=self)


@dataclass
class LoggedSource(FakeSource):
    """One pipeline's topics in the log."""

    log: Log = field(default_factory=Log)

    def consume(self, start: Start) -> RecordSource:
        """Read them from what is recorded."""
        return LogConsumer(self.log, [place.topic for place in self.logs], start)

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """Again, for a spill or a rebuild."""
        for offset, value in enumerate(self.log.read(source.topic, first, last + 1 - first), first):
            yield LogRecord(offset, None, value, (), 1_700_000_000_000)


class LogConsumer:
    """The only member of a group. Its fetcher's thread alone uses it."""

    revoke_patience_s = 5.0

    def __init__(self, log: Log, topics: list[str], start: Start) -> None:
        self._log = log
        self._start = start
        self._topics = topics
        self._at: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._listener: SourceListener | None = None

    def start(self, listener: SourceListener) -> None:
        """See ``RecordSource``."""
        self._listener = listener

    def poll(self, max_messages: int, timeout_s: float) -> msg.Polled:
        """See ``RecordSource``."""
        if not self._at:
            self._assign([TopicPartition(topic, 0) for topic in self._topics])
        elif self._log.rebalances:
            assert self._listener is not None
            self._listener.revoked(msg.Revoked(tuple(self._at)))
            self._at.clear()
            return msg.Polled()
        batches = []
        for place, at in self._at.items():
            if place in self._paused:
                continue
            if values := self._log.read(place.topic, at, max_messages):
                now_ms, self._at[place] = time.time_ns() // 1_000_000, at + len(values)
                offsets = list(range(at, at + len(values)))
                found = msg.Fetched(place, offsets, list(values), at + len(values), now_ms)
                batches.append(found)
        if not batches and timeout_s:
            threading.Event().wait(min(timeout_s, 0.02))
        return msg.Polled(tuple(batches), dict(self._at) if not batches else {})

    def pause(self, sources: Collection[TopicPartition] | None = None) -> None:
        """See ``RecordSource``."""
        self._paused.update(self._at if sources is None else sources)

    def resume(self, sources: Collection[TopicPartition] | None = None) -> None:
        """See ``RecordSource``."""
        self._paused.difference_update(set(self._at) if sources is None else sources)

    def commit(self, frontiers: Mapping[TopicPartition, int], wait: bool) -> None:
        """Nobody but the stores remembers."""

    def restart(self, sources: tuple[TopicPartition, ...]) -> None:
        """See ``RecordSource``."""
        self._assign(list(sources))

    def close(self) -> None:
        """See ``RecordSource``."""
        if self._listener is not None and self._at:
            self._listener.revoked(msg.Revoked(tuple(self._at)))

    def _assign(self, places: list[TopicPartition]) -> None:
        snapshot = self._start.load().snapshot
        known = {} if snapshot is None else snapshot.partitions
        starts = {place: known[place].frontier if place in known else 0 for place in places}
        logs = {place: Watermarks(0, self._log.end(place.topic)) for place in places}
        self._at |= starts
        assert self._listener is not None
        self._listener.assigned(msg.Assigned(starts, logs))


class Flow:
    """A daemon that runs in a thread, its file, and its tables in SQLite."""

    def __init__(self, folder: Path, log: Log, text: str) -> None:
        """``text``: the pipelines, which write to ``copy.{database}.{table}``."""
        self.folder, self.log = folder, log
        self.config = folder / "config.toml"
        self.write(text)
        self.rows = 0
        self.connect = ""  # the address of a Connect cluster, where a test has one
        self._service: Service | None = None
        self._thread: threading.Thread | None = None
        self._ended: list[Exit | BaseException] = []

    def write(self, text: str) -> None:
        """The file with those pipelines."""
        self.config.write_text(f"""
            [daemon]
            state_dir = "{self.folder}/state"
            staging_dir = "{self.folder}/staging"
            commit_interval_s = 0.1
            processors = 1
            [batch]
            max_age_s = 0.05
            [kafka]
            "bootstrap.servers" = "127.0.0.1:1"
            [sink.copy]
            kind = "sqlite"
            path = "copy.db"
            {text}
        """)

    def start(self) -> None:
        """Start it, and wait until it runs."""
        config = load(self.config)
        self._service = Service(config, False, Quiet(), ConfiguredSinks(), levels=LogLevels("info"))
        self._ended = []
        self._thread = threading.Thread(target=self._run, args=(self._service,), daemon=True)
        self._thread.start()
        self.until(lambda: all(p["stage"] == "running" for p in self.pipelines().values()))

    def _run(self, service: Service) -> None:
        try:
            self._ended.append(service.run())
        except BaseException as error:
            self._ended.append(error)

    def stop(self, status: Exit = Exit.OK) -> None:
        """End it in good order; ``status``: where a pipeline had failed before."""
        assert self._service is not None
        assert self._thread is not None
        self._service.stop("the test")
        self._thread.join(WITHIN_S)
        assert self._ended == [status]

    def ended_already(self) -> bool:
        """Whether it was stopped, or has ended by itself."""
        return bool(self._ended)

    def ended(self) -> list[Exit | BaseException]:
        """Wait until it has ended; how."""
        assert self._thread is not None
        self._thread.join(WITHIN_S)
        return self._ended

    def ask(self, what: str, **more: Any) -> Any:
        """A request to the control socket."""
        return control.ask(self.folder / "state", {"ask": what, **more})

    def do(
        self, name: str, /, *, act: bool = True, **params: Any
    ) -> tuple[int, list[str], list[str]]:
        """An operation, or its dry run: its status, what it said, what it warns of or refuses."""
        said: dict[bool, list[str]] = {True: [], False: []}
        state = self.folder / "state"
        done = asked(state, name, params, act, lambda good, line: said[good].append(line))
        return done.status.value, said[True], said[False]

    def did(self, name: str, /, **params: Any) -> str:
        """What it said. Raises ControlError where it was not done."""
        status, lines, problems = self.do(name, **params)
        if status:
            raise control.ControlError("; ".join(problems))
        return "\n".join(lines)

    def pipelines(self) -> dict[str, Any]:
        """The document's pipelines by name; none while nobody answers."""
        try:
            found = self.ask("status")
        except control.NotRunning:
            assert not self._ended, self._ended
            return {"": {"stage": "not yet"}}
        return {p["pipeline"]: p for p in found["pipelines"]}

    def phase(self, target: str) -> str:
        """A target's phase, of the pipeline p; empty while new actors know nothing of it."""
        targets = self.pipelines()["p"]["targets"]
        return next((str(each["phase"]) for each in targets if each["target"] == target), "")

    def reload(self, **more: Any) -> tuple[list[str], list[str]]:
        """Its lines, and why it was refused."""
        _, lines, refused = self.do("reload", **more)
        return [line for line in lines if line != "nothing differs"], refused

    def insert(self, topic: str, table: str, count: int = 1) -> None:
        """Rows for a table."""
        for _ in range(count):
            self.rows += 1
            row = {"id": self.rows, "name": "x", "qty": 1}
            self.log.produce(topic, canal(f"shop.{table}", "INSERT", [row]))

    def count(self, table: str) -> int:
        """The rows of a table, 0 where there is none."""
        with sqlite3.connect(self.folder / "copy.db") as file:
            try:
                found = file.execute(f'SELECT count(*) FROM "shop.{table}"').fetchone()[0]
            except sqlite3.OperationalError:
                found = 0
        file.close()
        return int(found)

    def applied(self, table: str, count: int) -> None:
        """Wait until a table has so many rows."""
        self.until(lambda: self.count(table) == count)

    def until(self, look: Callable[[], T]) -> T:
        """Wait until something is so."""
        end = time.monotonic() + WITHIN_S
        while not (found := look()):
            assert time.monotonic() < end, json.dumps(self.pipelines(), indent=1)
            threading.Event().wait(0.02)
        return found


def pipeline(name: str, topic: str, tables: str, more: str = "") -> str:
    """The section of a pipeline."""
    return f"""
        [pipeline.{name}]
        topics = ["{topic}"]
        format = "canal-json"
        offset_stores = ["file"]
        include = ["shop.{tables}"]
        target = "copy.{{database}}.{{table}}"
        {more}
    """

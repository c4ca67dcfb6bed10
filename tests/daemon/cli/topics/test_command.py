"""``binlogd topics peek``: which records it shows, and what it says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.cli.topics.stretch import Where, parse_where
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.port import LogRecord, TopicMissing
from sources.kafka import topics
from tests.daemon.cli.test_dead_letters_group import row
from tests.daemon.state.test_offset_transfer import World
from tests.sources.fake_source import FakeSource

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@dataclass
class FakeTopics:
    """Topics over the logs of a ``FakeSource``; it is each topic's log as well."""

    source: FakeSource
    topic: str = ""

    def log(self, topic: str) -> FakeTopics:
        return FakeTopics(self.source, topic)

    def reach(self) -> None:
        self.source.questions()

    def describe(self) -> tuple[str, list[TopicPartition]]:
        there = self.source.partitions([self.topic])
        if not there:
            raise TopicMissing(f"topic {self.topic!r}: unknown")
        return "id", there

    def questions(self) -> FakeSource:
        return self.source

    def reader(self) -> FakeSource:
        return self.source


class Peeked:
    """A configuration whose pipeline reads the world's topic, and logs without a broker."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World(folder)
        self.source = FakeSource({self.world.source: Watermarks(0, 0)})
        monkeypatch.setattr(topics, "KafkaTopics", lambda settings: FakeTopics(self.source))

    def put(self, topic: str, partition: int, *records: LogRecord) -> None:
        place = TopicPartition(topic, partition)
        self.source.records[place] = [*records]
        high = records[-1].offset + 1 if records else 0
        self.source.logs[place] = Watermarks(0, high)

    def run(self, *words: str, topic: str | None = None) -> Result:
        config = ["--config", str(self.world.folder / "config.toml")]
        return CliRunner().invoke(
            app, ["topics", "peek", topic or self.world.topic, *words, *config],
            env={"COLUMNS": "200"},
        )  # fmt: skip

    def offsets(self, *words: str, topic: str | None = None) -> list[tuple[int, int]]:
        found = json.loads(self.run("--json", *words, topic=topic).stdout)
        return [(each["partition"], each["offset"]) for each in found]


@pytest.fixture
def peeked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Peeked:
    return Peeked(tmp_path, monkeypatch)


def record(offset: int, value: bytes | None = None, **more: Any) -> LogRecord:
    parts: dict[str, Any] = {"key": None, "headers": (), "time_ms": 1_700_000_000_000 + offset}
    return LogRecord(offset=offset, value=value or row(offset), **(parts | more))


def test_a_record_is_shown_with_its_place_and_what_the_pipeline_makes_of_it(
    peeked: Peeked,
) -> None:
    topic = peeked.world.topic
    peeked.put(topic, 0, record(0, key=b"k", headers=(("origin", b"a"),)))
    done = peeked.run()
    assert done.exit_code == 0
    first, _, place, change = done.stdout.splitlines()
    assert first == "read as canal-json, pipeline shop"
    assert place == f"{topic}:0:0  2023-11-14T22:13:20.000+00:00  key: k  origin = a"
    assert json.loads(change)["after"] == {"id": 0, "name": "a"}


def test_json_has_the_whole_record(peeked: Peeked) -> None:
    peeked.put(peeked.world.topic, 0, record(3, key=b"\xff", headers=(("h", None),)))
    (found,) = json.loads(peeked.run("--json").stdout)
    assert found["offset"] == 3
    assert found["timestamp"] == 1_700_000_000_003
    assert found["key"] == {"base64": "/w=="}
    assert found["headers"] == [["h", None]]
    assert json.loads(found["value"]["text"])["table"] == "t"
    assert found["format"] == "canal-json"
    assert found["decode"]["changes"][0]["op"] == "I"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], range(10, 20)),
        (["--from", "earliest"], range(10)),
        (["--from", "earliest", "--count", "2"], range(2)),
        (["--from", "-3"], range(17, 20)),
        (["--from", "-12"], range(8, 20)),
        (["--from", "-12", "--count", "2"], range(8, 10)),
        (["--from", "15"], range(15, 20)),
        (["--from", "20"], []),
        (["--count", "100"], range(20)),
    ],
)
def test_where_it_begins_and_how_many_come(
    peeked: Peeked, words: list[str], expected: list[int]
) -> None:
    """And it ends at the log's end, whatever was asked for."""
    peeked.put(peeked.world.topic, 0, *(record(n) for n in range(20)))
    assert peeked.offsets(*words) == [(0, n) for n in expected]


def test_a_time_is_where_the_broker_says(peeked: Peeked) -> None:
    peeked.put(peeked.world.topic, 0, *(record(n) for n in range(20)))
    peeked.source.times = {peeked.world.source: 18}
    assert peeked.offsets("--from", "2023-11-14T22:13:20Z") == [(0, 18), (0, 19)]
    peeked.source.times = {}
    assert peeked.offsets("--from", "2h") == []


def test_the_newest_are_found_behind_offsets_without_a_record(peeked: Peeked) -> None:
    """Compaction and transactions leave such."""
    peeked.put(peeked.world.topic, 0, *(record(n) for n in (1, 2, 3, 5000)))
    assert peeked.offsets("--from", "-3") == [(0, 2), (0, 3), (0, 5000)]


def test_partitions_are_shown_in_the_order_of_time(peeked: Peeked) -> None:
    topic = peeked.world.topic
    peeked.put(topic, 0, *(record(n, time_ms=100 * n) for n in range(3)))
    peeked.put(topic, 1, *(record(n, time_ms=100 * n + 50) for n in range(3)))
    assert peeked.offsets("--from", "-2") == [(0, 2), (1, 2)]
    assert peeked.offsets("--from", "earliest", "--count", "3") == [(0, 0), (1, 0), (0, 1)]
    assert peeked.offsets("--partition", "1", "--count", "2") == [(1, 1), (1, 2)]


def test_a_record_that_the_format_refuses_is_shown_raw_with_the_reason(peeked: Peeked) -> None:
    peeked.put(peeked.world.topic, 0, record(0), record(1, b"no \x1b[2J json"))
    done = peeked.run()
    assert done.exit_code == 1
    assert "  bad: " in done.stdout
    assert "\x1b" not in done.stdout
    (_, bad) = json.loads(peeked.run("--json").stdout)
    assert bad["decode"]["changes"] == []


def test_a_topic_that_no_pipeline_reads_is_detected_or_shown_raw(peeked: Peeked) -> None:
    peeked.put("other", 0, record(0))
    assert "read as canal-json, detected, no pipeline" in peeked.run(topic="other").stdout
    peeked.put("logs", 0, record(0, b"GET / 200"))
    done = peeked.run(topic="logs")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("not decoded: its format can't be detected: ")
    assert "(no pipeline reads the topic)" in done.stdout
    assert "  value: GET / 200" in done.stdout.replace("no change; ", "")


def test_without_a_configuration_a_broker_is_named(peeked: Peeked, tmp_path: Path) -> None:
    peeked.put("other", 0, record(0))
    lone = ["topics", "peek", "other", "--config", str(tmp_path / "none.toml")]
    assert CliRunner().invoke(app, lone).exit_code == 2
    done = CliRunner().invoke(app, [*lone, "--broker", "127.0.0.1:9"])
    assert (done.exit_code, "read as canal-json" in done.stdout) == (0, True)


def test_a_long_value_is_cut_for_people_alone(peeked: Peeked) -> None:
    peeked.put("other", 0, record(0, b"x" * 1200))
    assert "200 characters more; --json has it whole" in peeked.run(topic="other").stdout
    assert "x" * 1200 in peeked.run("--json", topic="other").stdout


def test_an_empty_topic_says_so(peeked: Peeked) -> None:
    done = peeked.run()
    assert (done.exit_code, done.stderr, done.stdout) == (0, "binlogd: no record there\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "yesterday"], "'yesterday' is none of earliest, latest, -N, an offset"),
        (["--from", "21"], "has no offset 21: it holds 0 to 19"),
        (["--partition", "7"], "has no partition 7, but 0 to 0"),
        (["--pipeline", "x"], "there is no pipeline 'x'; have: shop"),
    ],
)
def test_what_is_not_there_is_refused_by_name(peeked: Peeked, words: list[str], said: str) -> None:
    peeked.put(peeked.world.topic, 0, *(record(n) for n in range(20)))
    done = peeked.run(*words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_an_offset_needs_its_partition(peeked: Peeked) -> None:
    peeked.put(peeked.world.topic, 0, record(0))
    peeked.put(peeked.world.topic, 1, record(0))
    done = peeked.run("--from", "0")
    assert (done.exit_code, "add --partition" in done.stderr) == (2, True)


def test_a_topic_or_a_broker_that_is_not_there_is_named(peeked: Peeked) -> None:
    done = peeked.run(topic="nowhere")
    assert (done.exit_code, "topic 'nowhere'" in done.stderr) == (2, True)
    peeked.source.away = True
    done = peeked.run()
    assert (done.exit_code, done.stderr) == (2, "binlogd: nobody is there\n")


def test_several_pipelines_need_a_choice(peeked: Peeked) -> None:
    config = peeked.world.folder / "config.toml"
    more = f'[pipeline.more]\ntopics = ["{peeked.world.topic}"]\nformat = "maxwell-json"\n'
    more += f'target = "file.main.{{table}}"\n[sink.file]\nkind = "sqlite"\npath = "{config}.db"\n'
    config.write_text(config.read_text() + more)
    peeked.put(peeked.world.topic, 0, record(0))
    done = peeked.run()
    assert (done.exit_code, "--pipeline more|shop" in done.stderr) == (2, True), done.stderr
    assert "read as canal-json" in peeked.run("--pipeline", "shop").stdout


def test_where_is_read() -> None:
    assert parse_where("earliest", 10, NOW) == Where()
    assert parse_where("latest", 10, NOW) == Where(last=10)
    assert parse_where("-4", 10, NOW) == Where(last=4)
    assert parse_where("0", 10, NOW) == Where(offset=0)
    assert parse_where("2026-01-01T00:00:00Z", 10, NOW) == Where(time_ms=1_767_225_600_000)
    assert parse_where("1d", 10, NOW) == Where(time_ms=1_767_225_600_000)

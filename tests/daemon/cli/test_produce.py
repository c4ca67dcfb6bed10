"""``binlogd produce``: what becomes a record, and where the records go."""

from __future__ import annotations

import json
import secrets
import uuid
from io import BytesIO
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from changes.model.partitioners import first_elsewhere
from daemon.cli.__main__ import app
from daemon.cli.produce import BadLine, Lines
from demo.broker import DevBroker
from demo.produce import create_topic
from offsets.position import TopicPartition
from sources.base.port import LogRecord, Outgoing
from sources.base.topics import NotSent
from sources.kafka import sender
from sources.kafka.log_reader import KafkaTopicLog
from sources.kafka.sender import KafkaSender

NOWHERE = "127.0.0.1:1"


def parts(text: bytes, key_field: str | None = None, tab: bool = False) -> list[object]:
    return [(each.key, each.value) for each in Lines(BytesIO(text), key_field, tab).records()]


def test_a_line_is_a_record_and_an_empty_one_none() -> None:
    found = parts(b'\xef\xbb\xbf{"a": 1}\n\n{"a": 2}\r\n')
    assert found == [(None, b'{"a": 1}'), (None, b'{"a": 2}')]


def test_a_line_of_key_and_value_is_a_whole_record_as_decode_reads_it() -> None:
    line = BytesIO(b'{"key":{"id":1},"value":null,"headers":{"h":"x"}}')
    (found,) = Lines(line, None, False).records()
    assert found == (b'{"id":1}', None, [("h", b"x")])


@pytest.mark.parametrize(
    ("field", "key"),
    [("id", b"7"), ("name", "ä".encode()), ("after.id", b"8"), ("after", b'{"id": 8}')],
)
def test_a_key_is_a_member_of_its_record(field: str, key: bytes) -> None:
    line = '{"id": 7, "name": "ä", "after": {"id": 8}}'.encode()
    assert parts(line, field) == [(key, line)]


def test_a_key_before_a_tabulator() -> None:
    found = parts(b'k1\t{"a": 1}\nk2\t\n', tab=True)
    assert found == [(b"k1", b'{"a": 1}'), (b"k2", None)]


@pytest.mark.parametrize(
    ("text", "field", "tab", "said"),
    [
        (b'{"a": 1}\n{"a":', None, False, r"^2: is no JSON: "),
        (b"id,name\n", None, False, r"^1: is no JSON: "),
        (b'{"a": 1}', "b", False, r"^1: has no member 'b' for its key"),
        (b'{"a": null}', "a", False, r"^1: its key 'a' is null"),
        (b'{"a": 1}', None, True, r"^1: KEY<TAB>VALUE is required"),
    ],
)
def test_a_bad_line_is_named(text: bytes, field: str | None, tab: bool, said: str) -> None:
    with pytest.raises(BadLine, match=said):
        parts(text, field, tab)


class Topic:
    """A name that nobody has, on the broker of the run, and what is in it."""

    def __init__(self, broker: DevBroker, folder: Path) -> None:
        self.name = f"produce-{uuid.uuid4().hex[:8]}"
        self.broker = broker.bootstrap
        self.file = folder / "changes.jsonl"

    def run(self, text: str, *words: str, stdin: bool = False) -> Result:
        self.file.write_text(text)
        name = "-" if stdin else str(self.file)
        words = ("produce", name, "--topic", self.name, "--broker", self.broker, *words)
        return CliRunner().invoke(app, [*words], input=text if stdin else None)

    def read(self, partition: int = 0) -> list[LogRecord]:
        log = KafkaTopicLog({"bootstrap.servers": self.broker}, self.name)
        place = TopicPartition(self.name, partition)
        end = log.questions().committed_ends([place])[place]
        return [*log.reader().read(place, 0, end - 1)] if end else []


@pytest.fixture
def topic(store_broker: DevBroker, tmp_path: Path) -> Topic:
    return Topic(store_broker, tmp_path)


def test_a_file_is_sent_to_a_topic_that_is_made(topic: Topic) -> None:
    """In its order, and a second time behind it."""
    lines = "".join(json.dumps({"n": n}) + "\n" for n in range(2500))
    done = topic.run(lines, "--create")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"2,500 records to {topic.name}\n  {topic.name}:0: 2,500, offsets 0 to 2499\n"
    )
    assert "".join(f"{each.value.decode()}\n" for each in topic.read() if each.value) == lines
    again = json.loads(topic.run('{"n": 0}\n', "--create", "--json", stdin=True).stdout)
    place = {"partition": 0, "records": 1, "first": 2500, "last": 2500}
    assert again == {"topic": topic.name, "records": 1, "partitions": [place]}


def test_a_key_has_one_partition_and_no_key_is_the_first(topic: Topic) -> None:
    """A key's is that of Java's clients, which ``partitioned_by = "key"`` expects."""
    create_topic(topic.broker, topic.name, 3)
    done = topic.run("".join(f'{key}\t{{"k": 1}}\n' for key in "abcabc"), "--tab")
    assert done.exit_code == 0, done.output
    found = [[each.key or b"" for each in topic.read(partition)] for partition in range(3)]
    assert sorted(key for keys in found for key in keys) == sorted([b"a", b"b", b"c"] * 2)
    for partition, keys in enumerate(found):
        assert first_elsewhere("murmur2", keys, 3, partition) is None
    before = [len(topic.read(partition)) for partition in range(3)]
    assert topic.run('{"k": 1}\n').exit_code == 0
    after = [len(topic.read(partition)) for partition in range(3)]
    assert after == [before[0] + 1, *before[1:]]


def test_a_topic_that_is_missing_is_named_with_the_way_out(topic: Topic) -> None:
    done = topic.run('{"n": 0}\n')
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"topic '{topic.name}'" in done.stderr
    assert "--create makes it" in done.stderr


def test_nothing_is_sent_where_one_line_is_bad(topic: Topic) -> None:
    create_topic(topic.broker, topic.name)
    done = topic.run('{"n": 0}\nbad\n')
    assert done.exit_code == 2
    assert done.stderr.startswith(f"binlogd: {topic.file}:2: is no JSON: ")
    assert done.stderr.endswith("; nothing was sent\n")
    assert topic.read() == []


def test_what_did_not_arrive_is_told(topic: Topic) -> None:
    """A record that is larger than the topic may hold."""
    small = NewTopic(topic.name, 1, 1, config={"max.message.bytes": "1000"})
    admin = AdminClient({"bootstrap.servers": topic.broker})
    admin.create_topics([small])[topic.name].result(20)
    large = secrets.token_hex(3000)
    done = topic.run('{"n": 0}\n' + json.dumps({"n": large}) + "\n")
    assert done.exit_code == 1
    assert f"{topic.file}: record " in done.stderr
    assert "size" in done.stderr
    assert " arrived" in done.stderr


def test_a_broker_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sources.kafka.admin.CONNECT_TIMEOUT_S", 0.5)
    (tmp_path / "a").write_text("{}\n")
    words = ["produce", str(tmp_path / "a"), "--topic", "t", "--broker", NOWHERE]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, f"no Kafka broker answers at {NOWHERE}" in done.stderr) == (2, True)


def test_no_answer_is_no_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that went away meanwhile: bounded, and told."""
    monkeypatch.setattr(sender, "SEND_WITHIN_S", 0.5)
    lone = KafkaSender({"bootstrap.servers": NOWHERE})
    with pytest.raises(NotSent, match="0 records arrived") as raised:
        lone.send([Outgoing("t", 0, None, b"{}", ())])
    assert raised.value.arrived == 0


def test_two_sources_of_keys_are_refused(tmp_path: Path) -> None:
    words = ["produce", "f", "--topic", "t", "--broker", NOWHERE, "--tab", "--key-field", "id"]
    assert CliRunner().invoke(app, words).exit_code == 2


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    words = ["produce", str(tmp_path / "none"), "--topic", "t", "--broker", NOWHERE]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "none: No such file" in done.stderr) == (2, True)

"""``binlogd dead-letters`` on the real broker, for both stores. No Spark: letters are made here."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from typer.testing import CliRunner, Result

from actors.contract.messages import DeadLetter
from changes.model.model import TargetName
from daemon.cli.__main__ import app
from daemon.config.config import Config
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig, pipelines_of
from daemon.operations.replay.replay_plan import Planner
from daemon.state.dead_letters.store import open_letters
from offsets.position import TopicPartition
from sources.base.port import LogRecord, Outgoing
from sources.opening import open_source
from tests.integration.rig import Rig, canal


class World:
    """A topic with records, some of them letters in a store, and the command line."""

    def __init__(self, rig: Rig, stored: str) -> None:
        self.rig = rig
        self.table = f"{rig.db}.orders"
        self.target = TargetName("lake", rig.db, "orders")
        self.source = TopicPartition(rig.topic, 0)
        self.dead_letters = "file" if stored == "file" else f"topic:{rig.topic}-dead"
        self.config = self.configure()
        (rig.folder / "state").mkdir()

    def configure(self, **more: Any) -> Path:
        section = self.rig.pipeline(
            on_bad_record="dead-letter", dead_letters=self.dead_letters, **more
        )
        return self.rig.write_config(p=section)

    @property
    def settings(self) -> Config:
        return load(self.config)

    def row(self, key: int | None, kind: str = "INSERT", **more: Any) -> bytes:
        row = {"name": "a"} if key is None else {"id": key, "name": "a"}
        return canal(self.table, kind, [row], **more)

    def letter(self, offset: int, error: str = "bad", target: bool = True) -> None:
        """Have a record stored, as the daemon does."""
        pipeline = PipelineConfig(self.settings, "p")
        store = open_letters(pipeline, pipeline.format())
        (record,) = open_source(self.settings, "p").reader().read(self.source, offset, offset)
        to = self.target if target else None
        store.keep(DeadLetter(self.source, 1, offset, record.value, error, to))

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["dead-letters", *arguments, "--config", str(self.config)])

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        done = self.run("list", "--json", *arguments)
        assert done.exit_code == 0, done.output
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def records(self, first: int = 0, committed: bool = True) -> list[LogRecord]:
        """What a reader of the topic gets."""
        if committed:
            self._wait_for_markers()
        reader = open_source(self.settings, "p").reader(uncommitted=not committed)
        return list(reader.read(self.source, first, 10**9))

    def _wait_for_markers(self) -> None:
        """A commit is answered when it is sure; what ends it in the log may come later."""
        admin = AdminClient({"bootstrap.servers": self.rig.broker.bootstrap})
        partition = {KafkaPartition(*self.source): OffsetSpec.latest()}
        end = time.monotonic() + 60
        while True:
            stable, last = (
                admin.list_offsets(partition, isolation_level=level)[next(iter(partition))].result()
                for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            )
            if stable.offset == last.offset:
                return
            assert time.monotonic() < end, f"a transaction is open at {stable.offset}"


@pytest.fixture(params=["file", pytest.param("topic", marks=pytest.mark.long)])
def world(rig: Rig, request: pytest.FixtureRequest) -> World:
    return World(rig, request.param)


def test_letters_are_listed_and_filtered(world: World) -> None:
    """By topic, table, reason, age and state; as a table for people, and as JSON."""
    world.rig.produce(world.row(1), world.row(None), b"garbage")
    world.letter(1, f"{world.table}: key column id is missing")
    world.letter(2, "not a Canal message", target=False)
    both = world.listed()
    assert [(letter["offset"], letter["reason"]) for letter in both] == [
        (1, "no-key"),
        (2, "unreadable"),
    ]
    assert both[0]["tables"] == [world.table]
    assert both[0]["target"] == str(world.target)
    assert both[0]["store"] == world.dead_letters
    wanted: list[tuple[list[str], list[int]]] = [
        (["--topic", world.rig.topic], [1, 2]), (["--topic", "other"], []),
        (["--table", f"{world.rig.db}.ord*"], [1]), (["--table", str(world.target)], [1]),
        (["--reason", "no-key"], [1]), (["--reason", "Canal"], [2]),
        (["--since", "1h"], [1, 2]), (["--since", "2999-01-01T00:00:00Z"], []),
        (["--state", "open"], [1, 2]), (["--state", "replayed"], []), (["--pipeline", "p"], [1, 2]),
    ]  # fmt: skip
    for options, offsets in wanted:
        assert [letter["offset"] for letter in world.listed(*options)] == offsets, options
    shown = world.run("list").stdout
    assert f"{world.source}:1" in shown
    assert "key column id is missing" in shown
    assert "2 dead letters" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--since", "yesterday"], "2026-01-31T00:00:00Z, or 2h, is required"),
        (["list", "--state", "new"], "'new' is not one of open, replayed, discarded"),
        (["list", "--pipeline", "x"], "--pipeline x: unknown; the configuration has: p"),
        (["show", "a"], "TOPIC:PARTITION:OFFSET is required, not 'a'"),
        (["show", "t:0:1"], "no dead letter at t:0:1"),
        (["replay"], "which? Name letters"),
        (["replay", "--all"], "no dead letter is meant by that"),
    ],
)
def test_wrong_options_are_one_line_and_status_2(rig: Rig, arguments: list[str], said: str) -> None:
    """Which says what is required."""
    done = World(rig, "file").run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_one_is_shown_in_full(world: World) -> None:
    """Bytes as text where they are text, else in base64; and what its format says of it now."""
    producer = Producer({"bootstrap.servers": world.rig.broker.bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [("h", b"\xff"), ("n", None)]
    producer.produce(world.rig.topic, world.row(5), b"\x00k", 0, headers=headers)
    assert producer.flush(30) == 0
    world.letter(0)
    (shown,) = json.loads(world.run("show", f"{world.source}:0", "--json").stdout)
    assert shown["key"] == {"base64": "AGs="}
    assert shown["headers"] == [["h", {"base64": "/w=="}], ["n", None]]
    assert shown["value"] == {"text": world.row(5).decode()}
    assert shown["decode"]["error"] is None
    assert shown["decode"]["changes"][0]["after"]["id"] == 5
    lines = world.run("show", f"{world.source}:0").stdout.splitlines()
    assert "decode says:       good" in lines
    assert "header:            h = (base64) /w==" in lines


def test_a_replay_appends_the_record_as_it_was(world: World) -> None:
    """Key, value and headers, to its own partition, with a header that names its first place."""
    producer = Producer({"bootstrap.servers": world.rig.broker.bootstrap})
    producer.produce(world.rig.topic, world.row(1), b"k", 0, headers=[("h", b"1")])
    assert producer.flush(30) == 0
    world.letter(0)
    done = world.run("replay", "--all", "--execute")
    assert (done.exit_code, done.stderr) == (0, "")
    (again,) = world.records(1)
    assert (again.key, again.value) == (b"k", world.row(1))
    assert again.headers == (("h", b"1"), ("binlogd.replayed", f"{world.source}:0".encode()))
    (letter,) = world.listed()
    assert letter["state"] == "replayed"
    assert letter["replayed"]["at"] == f"{world.source}:{again.offset}"
    assert f"{world.source}:0 is in the log again: {world.source}:{again.offset}" in done.stdout


def test_without_execute_nothing_is_changed(world: World) -> None:
    """It says what would be done, and how."""
    world.rig.produce(world.row(1))
    world.letter(0)
    done = world.run("replay", f"{world.source}:0")
    assert done.exit_code == 0
    assert f"{world.source}:0 would be appended to {world.source}: {world.target} 1" in done.stdout
    assert "nothing was changed: --execute does it" in done.stdout
    assert len(world.records(committed=False)) == 1
    assert world.listed()[0]["state"] == "open"


def test_no_letter_is_replayed_twice_by_mistake(world: World) -> None:
    """Nor is one of which the mark was lost, since the log itself has it again."""
    world.rig.produce(world.row(1))
    world.letter(0)
    place = f"{world.source}:0"
    assert world.run("replay", place, "--execute").exit_code == 0
    done = world.run("replay", place, "--execute")
    assert done.exit_code == 2
    assert f"refused: {place}: it was replayed already, as {world.source}:1" in done.stderr
    assert world.run("replay", "--all", "--execute").exit_code == 2
    assert len(world.records()) == 2


def test_a_mark_that_was_lost_is_put_back(rig: Rig) -> None:
    """A run that ended between the commit and the mark."""
    world = World(rig, "file")
    rig.produce(world.row(1))
    world.letter(0)
    assert world.run("replay", "--all", "--execute").exit_code == 0
    (rig.folder / "state" / "p.dead-letters.replayed.jsonl").unlink()
    assert world.listed()[0]["state"] == "open"
    done = world.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert "it was replayed already: offset 1 has it again" in done.stderr
    assert len(world.records()) == 2
    assert world.listed()[0]["state"] == "replayed"


def test_a_newer_change_of_the_row_refuses_the_replay(world: World) -> None:
    """Others are replayed; with --force this one is, too. Status 1: some are left."""
    world.rig.produce(world.row(1), world.row(2), world.row(1, "UPDATE"))
    for offset in (0, 1):
        world.letter(offset)
    done = world.run("replay", "--all", "--execute")
    assert done.exit_code == 1
    assert f"refused: {world.source}:0: {world.target}: its row 1 changed since, offset 2" in (
        done.stderr
    )
    assert done.stderr.splitlines()[-1] == (
        f"binlogd: binlogd offsets reset --to offset --at 0 --topic {world.rig.topic} "
        f"--partition 0 --table {world.target}"
    )
    assert [record.value for record in world.records(3)] == [world.row(2)]
    assert world.run("replay", "--all", "--execute").exit_code == 2
    forced = world.run("replay", "--all", "--execute", "--force")
    assert (forced.exit_code, forced.stderr) == (0, "")
    assert [record.value for record in world.records(3)] == [world.row(2), world.row(1)]


def test_letters_of_one_row_are_replayed_in_their_order(world: World) -> None:
    """All together; an older one alone is refused, whatever the order they are named in."""
    values = [world.row(1), world.row(1, "UPDATE"), world.row(1, "DELETE")]
    world.rig.produce(*values)
    for offset in (0, 1, 2):
        world.letter(offset)
    done = world.run("replay", f"{world.source}:1", f"{world.source}:0", "--execute")
    assert done.exit_code == 2
    assert f"{world.source}:0: {world.target}: its row 1 changed since, offset 2" in done.stderr
    assert world.run("replay", "--all", "--execute").exit_code == 0
    assert [record.value for record in world.records(3)] == values


def test_the_youngest_letter_of_a_row_may_go_alone(world: World) -> None:
    """The older ones are refused from then on."""
    world.rig.produce(world.row(1), world.row(1, "UPDATE"))
    for offset in (0, 1):
        world.letter(offset)
    assert world.run("replay", f"{world.source}:1", "--execute").exit_code == 0
    done = world.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert [record.value for record in world.records(2)] == [world.row(1, "UPDATE")]


def test_a_record_that_is_still_bad_is_refused_even_by_force(world: World) -> None:
    """It would be a letter again."""
    world.rig.produce(world.row(None))
    world.letter(0)
    done = world.run("replay", "--all", "--execute", "--force")
    assert done.exit_code == 2
    assert "it can't be applied yet" in done.stderr
    assert len(world.records()) == 1


def test_a_log_that_lost_what_came_between_is_doubted(world: World) -> None:
    """What nobody can look at may have changed the row."""
    from confluent_kafka.admin import AdminClient

    world.rig.produce(world.row(1), world.row(2), world.row(3))
    world.letter(0)
    admin = AdminClient({"bootstrap.servers": world.rig.broker.bootstrap})
    place = KafkaPartition(world.rig.topic, 0, 2)
    admin.delete_records([place])[place].result(20)
    done = world.run("replay", "--all")
    assert done.exit_code == 2
    assert "the log begins at 2: what came in between is unknown" in done.stderr
    assert world.run("replay", "--all", "--execute", "--force").exit_code == 0
    assert world.records(3)[0].value == world.row(1)


def test_a_topic_that_was_made_again_is_doubted(world: World) -> None:
    """Its offsets mean other records now."""
    world.rig.produce(world.row(1))
    world.letter(0)
    world.rig.make_again(world.rig.topic)
    assert "the log ends at 0" in world.run("replay", "--all").stderr
    world.rig.produce(world.row(2))
    assert "the log has another record in its place" in world.run("replay", "--all").stderr


def test_another_pipeline_on_the_topic_is_doubted(world: World) -> None:
    """It applied the record, and would get it again."""
    rig = world.rig
    rig.produce(world.row(1))
    other = rig.pipeline(group=f"q-{rig.db}", target="lake.q_{database}.{table}")
    section = rig.pipeline(on_bad_record="dead-letter", dead_letters=world.dead_letters)
    world.config = rig.write_config(p=section, q=other)
    world.letter(0)
    done = world.run("replay", "--all", "--pipeline", "p")
    assert done.exit_code == 2
    assert "pipeline q reads the topic, too, and gets it again" in done.stderr


def test_a_topic_that_is_not_read_any_more_is_refused(world: World) -> None:
    """Nobody would see the record, whatever is forced."""
    world.rig.produce(world.row(1))
    world.letter(0)
    world.configure(topics=["another"])
    done = world.run("replay", "--all", "--force", "--execute")
    assert done.exit_code == 2
    assert "the pipeline does not read its topic any more" in done.stderr


def test_numbered_messages_are_refused(rig: Rig) -> None:
    """Tencent DTS's: what comes with an old number is dropped as sent twice."""
    world = World(rig, "file")
    rig.produce(world.row(1))
    world.letter(0)
    world.configure(format="tencent-dts")
    done = world.run("replay", "--all", "--force", "--execute")
    assert done.exit_code == 2
    assert "tencent-dts numbers its messages" in done.stderr
    assert "binlogd offsets reset" in done.stderr


def test_uncommitted_readers_are_refused(rig: Rig) -> None:
    """They would apply a record that is taken back."""
    world = World(rig, "file")
    rig.produce(world.row(1))
    world.letter(0)
    world.configure(kafka={"isolation.level": "read_uncommitted"})
    done = world.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert "reads uncommitted records" in done.stderr


@pytest.mark.long
def test_a_broker_that_is_away_is_one_line_and_status_1(rig: Rig) -> None:
    """Nothing is decided then; files are listed all the same."""
    world = World(rig, "file")
    rig.produce(world.row(1))
    world.letter(0)
    world.config.write_text(world.config.read_text().replace(rig.broker.bootstrap, "127.0.0.1:1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sources.kafka.admin.ANSWER_TIMEOUT_S", 2.0)
        patch.setattr("sources.kafka.append.TRANSACTION_S", 2.0)
        for more in ([], ["--execute"]):
            done = world.run("replay", "--all", *more)
            assert done.exit_code == 1
            assert len(done.stderr.splitlines()) == 1
    assert len(world.listed()) == 1


def test_what_is_written_at_the_last_moment_is_seen(world: World) -> None:
    """Between the look at the log and the record's own place there: it is taken back."""
    world.rig.produce(world.row(1))
    world.letter(0)
    looked = Planner.plan

    def plan_then_write(planner: Planner, stored: Any) -> Any:
        found = looked(planner, stored)
        if len(world.records(committed=False)) == 1:
            world.rig.produce(world.row(1, "UPDATE"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Planner, "plan", plan_then_write)
        done = world.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert "its row 1 changed since, offset 1" in done.stderr
    assert [record.value for record in world.records()] == [world.row(1), world.row(1, "UPDATE")]
    assert len(world.records(committed=False)) == 3
    assert world.listed()[0]["state"] == "open"


def test_two_replays_at_once_append_once(rig: Rig) -> None:
    """Whoever comes later puts the first one out, and finds what it left."""
    world = World(rig, "file")
    rig.produce(world.row(1))
    source = open_source(world.settings, "p")
    first = source.appender()
    reached, go_on = threading.Event(), threading.Event()
    failed: list[str] = []

    def check(_: object) -> bool:
        reached.set()
        return go_on.wait(60)

    def append() -> None:
        try:
            first.append([Outgoing(rig.topic, 0, None, b"{}", [])], check, lambda _: [])
        except Exception as error:
            failed.append(str(error))

    thread = threading.Thread(target=append)
    thread.start()
    assert reached.wait(60)
    second = source.appender()
    go_on.set()
    thread.join(120)
    assert failed
    second.append([Outgoing(rig.topic, 0, None, b"{}", [])], lambda _: True, lambda _: [])
    assert len(world.records(1)) == 1


def test_a_topic_that_is_compacted_is_refused_at_the_start(rig: Rig) -> None:
    """Letters of one key would replace each other."""
    from confluent_kafka.admin import AdminClient, NewTopic

    from actors.contract.ports import NotKept

    world = World(rig, "topic")
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    made = NewTopic(f"{rig.topic}-dead", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([made])[made.topic].result(20)
    rig.produce(world.row(1))
    with pytest.raises(NotKept, match=r"has cleanup\.policy=compact"):
        world.letter(0)


def test_a_topic_that_is_missing_is_made_to_keep_what_it_gets(rig: Rig) -> None:
    """Nothing in it goes with its age; a letter as large as a record may be finds room."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    world = World(rig, "topic")
    rig.produce(world.row(1))
    world.letter(0)
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    asked = ConfigResource(ResourceType.TOPIC, f"{rig.topic}-dead")
    found = admin.describe_configs([asked])[asked].result(20)
    assert found["retention.ms"].value == "-1"
    assert int(found["max.message.bytes"].value) > 60_000_000


def test_a_topic_that_is_not_there_yet_has_no_letters(rig: Rig) -> None:
    """To look for some does not make it: the daemon does, so that it keeps what it gets."""
    from confluent_kafka.admin import AdminClient

    world = World(rig, "topic")
    assert world.listed() == []
    topics = AdminClient({"bootstrap.servers": rig.broker.bootstrap}).list_topics(timeout=20).topics
    assert f"{rig.topic}-dead" not in topics


def test_a_record_that_is_as_large_as_may_be_is_kept(rig: Rig) -> None:
    """With our headers it is larger than what a topic takes by default."""
    world = World(rig, "topic")
    record = b"x" * 999_850
    rig.produce(record)
    world.letter(0, target=False)
    (shown,) = json.loads(world.run("show", f"{world.source}:0", "--json").stdout)
    assert shown["value"]["text"].encode() == record


def test_a_topic_that_takes_no_such_record_says_so(rig: Rig) -> None:
    """The letter is not stored, so its record does not count as done."""
    from confluent_kafka.admin import AdminClient, NewTopic

    from actors.contract.ports import NotKept

    world = World(rig, "topic")
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    made = NewTopic(f"{rig.topic}-dead", 1, 1, config={"max.message.bytes": "500"})
    admin.create_topics([made])[made.topic].result(20)
    rig.produce(b"x" * 5000)
    with pytest.raises(NotKept, match=r"-dead: .*[Mm]essage size too large"):
        world.letter(0, target=False)


def test_check_config_looks_at_the_topic_of_letters(rig: Rig) -> None:
    """Before the daemon is started with it; one that is missing is made then."""
    from confluent_kafka.admin import AdminClient, NewTopic

    from daemon.operations.checks.check import connect_problems

    world = World(rig, "topic")
    assert list(connect_problems(world.settings, list)) == []
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    made = NewTopic(f"{rig.topic}-dead", 1, 1, config={"cleanup.policy": "compact,delete"})
    admin.create_topics([made])[made.topic].result(20)
    (found,) = connect_problems(world.settings, list)
    assert found.startswith(f"pipeline.p.dead_letters: topic {rig.topic}-dead: has cleanup.policy")


def test_records_of_other_programs_in_the_topic_are_passed_over(rig: Rig) -> None:
    """The topic may be shared; a broken letter of ours is told, and ends with status 1."""
    world = World(rig, "topic")
    rig.produce(world.row(1))
    world.letter(0)
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    producer.produce(f"{rig.topic}-dead", b"x")
    producer.produce(f"{rig.topic}-dead", b"x", headers=[("binlogd.letter", b"{")])
    assert producer.flush(30) == 0
    done = world.run("list", "--json")
    assert done.exit_code == 1
    assert [letter["offset"] for letter in json.loads(done.stdout)] == [0]
    assert f"{rig.topic}-dead:0 offset 2: not JSON" in done.stderr


def test_the_last_hours_letters_of_a_topic_are_counted(rig: Rig) -> None:
    """For the bound, which outlives a restart; others' are not this pipeline's."""
    world = World(rig, "topic")
    rig.produce(world.row(1), world.row(2))
    for offset in (0, 1, 1):
        world.letter(offset)
    section = rig.pipeline(on_bad_record="dead-letter", dead_letters=world.dead_letters)
    other = section | {"group": f"q-{rig.db}", "target": "lake.q_{database}.{table}"}
    world.config = rig.write_config(p=section, q=other)
    pipelines = pipelines_of(world.settings)
    for name, count in (("p", 2), ("q", 0)):
        store = open_letters(pipelines[name], pipelines[name].format())
        assert len(store.recent(3600.0)) == count

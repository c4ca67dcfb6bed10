"""Those who are told of a gate, well and ill: each gets all, in order, at least once."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from demo.broker import DevBroker
from sources.kafka.topics import KafkaTopics
from tests.daemon.admin.events.hook import CUT, HANGS, TWICE, Hook
from tests.daemon.cli.counts.test_broker import TARGET
from tests.daemon.cli.gate.gate_world import GateWorld, at
from tests.daemon.cli.gate.test_run import world
from tests.needs import tool

__all__ = ["world"]

pytestmark = pytest.mark.timeout(240)

SECRET = "a secret of the receiver's"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def ids(hook: Hook) -> list[str]:
    return [one["id"] for one in hook.got]


def topic_of(world: GateWorld, name: str) -> list[tuple[bytes | None, str]]:
    """The keys and ids of a topic's messages."""
    log = KafkaTopics({"bootstrap.servers": world.broker}).log(name)
    _, (source,) = log.describe()
    last = log.questions().committed_ends([source])[source] - 1
    found = log.reader().read(source, 0, last)
    return [(each.key, json.loads(each.value or b"")["id"]) for each in found]


def test_all_ways_are_told_once_in_order(world: GateWorld, hook: Hook) -> None:
    """Signed with the time; the same document everywhere."""
    topic = f"gates-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": world.broker})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    world.gate(topic=topic, webhook=hook.address, webhook_secret=SECRET)
    world.written(3)
    world.once()
    names = [f"g:{at(minute)}:1" for minute in (0, 1)]
    assert ids(hook) == names
    assert topic_of(world, topic) == [(b"g", name) for name in names]
    assert world.recorded().notices == ()
    first, told_at = hook.got[0], hook.got[0].pop("at")
    assert abs(time.time() - int(hook.headers[0]["X-Binlogd-Timestamp"])) < 120
    assert told_at.endswith("Z")
    assert first == {
        "id": names[0], "type": "closed", "gate": "g", "from": at(0), "through": at(1),
        "version": 1, "tables": {TARGET: None}, "ends": {f"{world.topic}:0": 4},
        "counts": False,
    }  # fmt: skip
    signed = hook.headers[0]["X-Binlogd-Timestamp"].encode() + b"." + hook.bodies[0]
    wanted = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert hook.headers[0]["X-Binlogd-Signature"] == f"sha256={wanted}"


@pytest.mark.parametrize(
    ("answer", "why"),
    [(500, "it answers 500"), (302, "a redirect, which is not followed: set gates.g.webhook"),
     (CUT, "Remote end closed connection")],
)  # fmt: skip
def test_what_a_webhook_did_not_take_is_told_again(
    world: GateWorld, hook: Hook, answer: int, why: str
) -> None:
    """The same bytes, later; the folder has its mark meanwhile; the list names the reason."""
    world.gate(success=str(world.marks), webhook=hook.address)
    world.written(2)
    hook.answers = [answer]
    status, said = world.once()
    assert (status, world.closed()) == (75, [(at(0), 1)])
    assert f"gate g: webhook: {why}" in said or why in said
    assert hook.address not in said
    listed = world.command("list").stdout
    assert "webhook: 1 notification waits, for " in listed
    assert why in listed
    assert hook.address not in listed
    (notice,) = world.recorded().notices
    assert notice.ways == ("webhook",)
    world.once()
    assert ids(hook) == [f"g:{at(0)}:1"]
    assert json.loads(hook.bodies[0]) == notice.document


def test_an_answer_that_comes_twice_counts_once(world: GateWorld, hook: Hook) -> None:
    world.gate(webhook=hook.address)
    world.written(3)
    hook.answers = [TWICE, TWICE]
    world.once()
    assert ids(hook) == [f"g:{at(0)}:1", f"g:{at(1)}:1"]
    assert world.recorded().notices == ()


def test_a_hook_that_hangs_holds_up_nobody_and_kill_9_loses_nothing(
    world: GateWorld, hook: Hook
) -> None:
    """Between the record and the delivery: the next start tells it, with the same id. What was
    taken, and not recorded as taken yet, comes again."""
    ill = Hook(always=HANGS)
    world.gate("a", webhook=ill.address, success=str(world.marks))
    world.gate("b", webhook=hook.address)
    world.written(3)
    process = world.start()
    assert ill.news.acquire(timeout=0.1) is False
    for _ in range(2):
        assert hook.news.acquire(timeout=60)
    process.says(f"gate a: {at(1)} to {at(2)}: closed")
    assert [n.id for n in world.recorded("a").notices if "webhook" in n.ways] == [
        f"a:{at(0)}:1", f"a:{at(1)}:1",
    ]  # fmt: skip
    process.kill()
    ill.always = 200
    world.once()
    ill.close()
    assert ids(ill) == [f"a:{at(0)}:1", f"a:{at(1)}:1"]
    assert list(dict.fromkeys(ids(hook))) == [f"b:{at(0)}:1", f"b:{at(1)}:1"]
    assert world.closed("a") == [(at(0), 1), (at(1), 1)]


def test_a_folder_that_is_away_gets_its_marks_once_it_is_back(world: GateWorld) -> None:
    """It is not made: what is mounted there may be away."""
    world.gate(success=str(world.marks / "mounted"))
    world.written(2)
    status, said = world.once()
    assert status == 75
    assert "gate g: success: [Errno 2] No such file or directory: " in said
    (world.marks / "mounted").mkdir()
    world.once()
    assert (world.marks / "mounted" / "g" / at(0) / "_SUCCESS").exists()


@pytest.fixture
def sealed(world: GateWorld) -> Iterator[Path]:
    """A folder that takes nothing, also of root."""
    chattr = tool("chattr")
    if subprocess.run([chattr, "+i", world.marks], capture_output=True, check=False).returncode:
        pytest.skip("this file system seals no folder")
    yield world.marks
    subprocess.run([chattr, "-i", world.marks], check=False)


def test_a_folder_that_takes_nothing_holds_up_no_other_way(
    world: GateWorld, hook: Hook, sealed: Path
) -> None:
    world.gate(success=str(sealed), webhook=hook.address)
    world.written(2)
    status, said = world.once()
    assert (status, ids(hook)) == (75, [f"g:{at(0)}:1"])
    assert "gate g: success: [Errno 1] Operation not permitted: " in said
    subprocess.run([tool("chattr"), "-i", sealed], check=True)
    world.once()
    assert (world.closed(), ids(hook)) == ([(at(0), 1)], [f"g:{at(0)}:1"])


def test_a_topic_that_is_away_holds_up_no_other_way(world: GateWorld, hook: Hook) -> None:
    """Another cluster, where nobody answers."""
    world.gate(webhook=hook.address, topic="t", **{"kafka": {}})
    text = world.config.read_text().replace(
        "kafka = {}", 'kafka."bootstrap.servers" = "127.0.0.1:1"'
    )
    world.config.write_text(text)
    world.written(2)
    status, _ = world.once()
    assert (status, ids(hook)) == (75, [f"g:{at(0)}:1"])
    (notice,) = world.recorded().notices
    assert notice.ways == ("topic",)
    assert "topic: 1 notification waits" in world.command("list").stdout


def test_a_way_that_is_configured_no_more_waits_for_nobody(world: GateWorld, hook: Hook) -> None:
    world.gate(webhook=hook.address)
    world.written(2)
    hook.answers = [500]
    world.once()
    text = world.config.read_text()
    world.config.write_text(text.replace(f'webhook = "{hook.address}"', ""))
    _, said = world.once()
    assert "webhook is not configured any more: 1 notification given up" in said
    assert world.recorded().notices == ()


def test_nothing_is_told_where_the_state_directory_takes_nothing(
    world: GateWorld, store_broker: DevBroker, hook: Hook
) -> None:
    """Recorded first: a notification that was not recorded could be told and never again."""
    world.gate(webhook=hook.address)
    world.written(2)
    (world.state / "gates").mkdir(mode=0o700)
    (world.state / "gates" / "g.json.new").mkdir()
    status, said = world.once()
    assert (status, hook.got) == (75, [])
    assert "g.json.new" in said

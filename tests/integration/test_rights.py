"""A Kafka whose users may do little, as those of a cloud's subscription: what works, and what is
named where a right is missing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from tests.changes.formats import protobuf_records as wire
from tests.integration.guarded_broker import (
    PASSWORD,
    GuardedBroker,
    Right,
    describe,
    group,
    read,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "topic-subs-1"
NO_GROUP = "(the Kafka user lacks READ on the consumer group: set `group`"
NO_TOPIC = "lacks READ on the topic"
NO_CONFIGS = "may be compacted: Topic authorization failed. (the Kafka user lacks DESCRIBE_CONFIGS"


def group_of(user: str) -> str:
    return f"consumer-grp-subs-1-{user}"


def subscription() -> list[bytes]:
    """Rows of a table as Tencent's DTS sends them."""
    columns = [wire.dts_column("id", "int(11)", key=True), wire.dts_column("item", "varchar(9)")]
    rows = [wire.dts_row((), [wire.dts_number(3, str(n)), wire.dts_text("tea")]) for n in range(3)]
    return [wire.dts_message(wire.dts_rows(0, columns, [row])) for row in rows]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    """With a topic of three rows and users of different rights."""
    with GuardedBroker(tmp_path_factory.mktemp("guarded")) as started:
        started.topic(TOPIC, subscription())
        users: dict[str, tuple[Right, ...]] = {
            "reader": (read(TOPIC), group(group_of("reader"))),
            "groupless": (read(TOPIC),),
            "topicless": (group(group_of("topicless")),),
            "describer": (describe(TOPIC), group(group_of("describer"))),
        }
        for name, rights in users.items():
            started.user(name, *rights)
        yield started


class Place:
    """A folder with a user's configuration, and binlogd's commands in it."""

    def __init__(self, broker: GuardedBroker, user: str, folder: Path, more: str = "") -> None:
        self.folder = folder
        self.login = {k: str(v) for k, v in broker.login(user).items()}
        kafka = "\n".join(f'"{key}" = "{value}"' for key, value in self.login.items())
        (folder / "config.toml").write_text(
            f'[kafka]\n{kafka}\n[sink.lake]\nkind = "sqlite"\npath = "shop.db"\n'
            f'[pipeline.shop]\ntopics = ["{TOPIC}"]\ngroup = "{group_of(user)}"\n'
            f'format = "tencent-dts"\ntarget = "lake.{{database}}.{{table}}"\n{more}\n'
            '[daemon]\nstate_dir = "state"\nstaging_dir = "staging"\n'
        )
        (folder / "config.toml").chmod(0o600)

    def run(self, *words: str) -> tuple[int, str]:
        """Exit status, and all that was said."""
        done = subprocess.run(
            [CHECKOUT / ".venv" / "bin" / "binlogd", *words], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=120, env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        return done.returncode, done.stdout

    def init(self) -> tuple[int, str]:
        """A first configuration for this user, beside the other."""
        keys = [k for k in self.login if k != "bootstrap.servers"]
        login = [word for key in keys for word in ("--kafka", f"{key}={self.login[key]}")]
        where = ("--broker", self.login["bootstrap.servers"], "--topic", TOPIC)
        return self.run("init", *where, "--lake", "first.db", "-o", "first.toml", *login)


def test_who_may_only_read_topic_and_group_misses_nothing(
    broker: GuardedBroker, tmp_path: Path
) -> None:
    """Static member and quarantine included. What can't be known without a right is said."""
    place = Place(broker, "reader", tmp_path, 'on_refused_target = "quarantine"')
    status, said = place.run("check-config", "--connect")
    assert (status, NO_CONFIGS in said) == (0, True), said
    assert place.init()[0] == 0
    assert "tencent-dts" in (tmp_path / "first.toml").read_text()
    status, said = place.run("topics", "peek", TOPIC)
    assert (status, said.count('"op": "I"')) == (0, 3), said
    for changes in (3, 0):
        status, said = place.run("run", "--until-caught-up")
        assert (status, f"changes={changes} " in said) == (0, True), said
        assert "retention_unknown" in said
        assert "other_members" not in said
        assert "failed" not in said.replace("authorization failed", ""), said
    status, said = place.run("query", "select count(*) as n from lake.s.t")
    assert (status, said.split()[:2]) == (0, ["n", "3"]), said
    status, said = place.run("offsets", "reset", "--to", "earliest", "--execute")
    assert status == 0, said
    status, said = place.run("run", "--until-caught-up")
    assert (status, "changes=3 " in said) == (0, True), said


@pytest.mark.parametrize(
    ("user", "lacks", "peeks"),
    [("groupless", NO_GROUP, True), ("topicless", NO_TOPIC, False), ("describer", NO_TOPIC, False)],
)
def test_a_missing_right_is_named(
    broker: GuardedBroker, tmp_path: Path, user: str, lacks: str, peeks: bool
) -> None:
    """Before the start, and by it. A look at the topic needs no group."""
    place = Place(broker, user, tmp_path, 'start = "earliest"')
    status, said = place.run("check-config", "--connect")
    assert (status, lacks in said) == (2, True), said
    for status, said in (place.run("topics", "peek", TOPIC), place.init()):
        assert (status == 0) is peeks, said
        assert peeks or lacks in said
    status, said = place.run("run", "--until-caught-up")
    assert (status > 0, lacks in said) == (True, True), said
    status, said = place.run("offsets", "reset", "--to", "earliest")
    assert (status > 0) is (user != "describer"), said  # it has nothing to move
    assert status == 0 or lacks in said, said
    assert PASSWORD not in said

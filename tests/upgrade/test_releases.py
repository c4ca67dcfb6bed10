"""The state that each release left behind: today's binlogd goes on from it, through a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from demo.broker import DevBroker
from tests.integration.test_process import ended
from tests.upgrade.history import World, insert

RELEASES = sorted((Path(__file__).parent / "releases").iterdir())
MORE = 4_000

pytestmark = [pytest.mark.long, pytest.mark.integration]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with DevBroker(tmp_path_factory.mktemp("upgrade-broker")) as started:
        yield started


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def world(release: Path, broker: DevBroker, tmp_path: Path) -> Iterator[World]:
    """The release's folder, and a log of the same records at the same offsets."""
    made = World(tmp_path, broker)
    made.configure("")
    shutil.copytree(release / "state", tmp_path / "state")
    shutil.copyfile(release / "copy.db", tmp_path / "copy.db")
    offset = 0
    for line in (release / "log.jsonl").read_text().splitlines():
        record = json.loads(line)
        while offset < record["offset"]:  # the end of a transaction, which nobody reads
            made.produce(b"{}")
            offset += 1
        made.produce(record["value"].encode())
        offset += 1
    assert made.end() == offset
    for path in (tmp_path / "state").glob("p.offsets*.json"):
        same_topic(path, (release / "topic-id").read_text().strip(), made.topic_id)
    yield made
    made.remove()


def same_topic(path: Path, old: str, new: str) -> None:
    """A broker gives a topic its id. The file is changed as text, not read by what is tested."""
    document = json.loads(path.read_text().replace(old, new))
    assert new in path.read_text().replace(old, new)
    body = msgspec.json.encode(document["body"], order="sorted")
    document["sha256"] = hashlib.sha256(body).hexdigest()
    path.write_text(json.dumps(document))


def rows(world: World, table: str) -> list[object]:
    return [row[0] for row in world.sql(f'SELECT id FROM "shop.{table}" ORDER BY id')]


def test_it_goes_on_through_a_kill(world: World) -> None:
    """Rows, a quarantine with its spill, letters: nothing is lost, nothing comes twice."""
    listed = json.loads(world.command("tables", "list", "--json"))
    assert "copy.shop.u" in str(listed)
    with world.running() as (process, log):
        world.produce(*insert("t", *range(31, 31 + MORE)), *insert("u", 5))
        log.wait_for("written")
        process.kill()
    world.sql("DROP INDEX one_name")
    with world.running() as (_, log):
        world.command("tables", "retry", "copy.shop.u")
        log.wait_for("released")
        world.produce(*insert("t", 9_999_999))
        log.wait_for("written")
    assert rows(world, "t") == [*range(31 + MORE), 9_999_999]
    assert rows(world, "u") == [0, 1, 2, 3, 4, 5]
    assert rows(world, "v") == [1]
    offsets = [row[0] for row in world.sql('SELECT _offset FROM "shop.t_log"')]
    assert len(offsets) == len(set(offsets)) == 31 + MORE + 1
    letters = json.loads(world.command("dead-letters", "list", "--json"))
    assert sorted(letter["state"] for letter in letters) == ["open", "replayed"]


def test_a_newer_folder_is_refused_and_left_alone(world: World) -> None:
    """By the daemon and by each command that would write there; with the ways out."""
    state = world.folder / "state"
    (state / "version").write_text("2\n")
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    for words in (
        ("run",), ("dead-letters", "list"), ("dead-letters", "replay", "--all", "--execute"),
        ("offsets", "reset", "--to", "earliest", "--execute"),
        ("offsets", "import", str(state / "p.offsets.json")),
    ):  # fmt: skip
        status, said = ended(world.start(*words))
        assert (words, status) == (words, 2)
        assert "says '2', this binlogd knows 1: a newer one" in said
        assert "Start that one again" in said
    after = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    assert {path.name for path in after.keys() ^ before.keys()} <= {"lock"}
    assert {path for path in before if before[path] != after[path]} == set()

"""``binlogd dead-letters list``, ``show`` and ``replay`` on a source without a broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from actors.contract.messages import DeadLetter
from changes.formats import FORMATS
from changes.model.model import FormatOptions, TargetName
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.store import open_letters
from offsets.recovery import Watermarks
from sources.base.port import AppendRefused, LogRecord, OutcomeUnknown
from sources.opening import open_source
from tests.daemon.state.test_offset_transfer import World
from tests.sources.fake_source import FakeSource

TARGET = TargetName("lake", "db", "t")


def row(key: int | None, kind: str = "INSERT") -> bytes:
    data = {"name": "a"} if key is None else {"id": str(key), "name": "a"}
    message = {
        "database": "db", "table": "t", "type": kind, "isDdl": False, "pkNames": ["id"],
        "mysqlType": {"id": "int", "name": "varchar(9)"}, "data": [data], "old": None,
        "es": 1, "ts": 1, "sql": "",
    }  # fmt: skip
    return json.dumps(message).encode()


class Letters:
    """A log and the files of letters of a state directory, and the commands on both."""

    def __init__(self, world: World, source: FakeSource) -> None:
        self.world = world
        self.source = source
        self.file = world.folder / "config.toml"

    def produce(self, *values: bytes) -> None:
        self.source.produce(*values)

    def store(self, *offsets: int) -> None:
        """Make letters of records, as the daemon does."""
        pipeline = PipelineConfig(load(self.file), "shop")
        kept = open_letters(pipeline, FORMATS["canal-json"](FormatOptions()))
        for offset in offsets:
            found = open_source(load(self.file), "shop").reader().record(self.world.source, offset)
            assert found is not None
            kept.keep(DeadLetter(self.world.source, 1, offset, found.value, "bad", TARGET))

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["dead-letters", *words, "--config", str(self.file)])

    def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("list", "--json").stdout)
        return found

    def log(self) -> list[LogRecord]:
        return self.source.records[self.world.source]

    def place(self, offset: int) -> str:
        return f"{self.world.source}:{offset}"


@pytest.fixture
def letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Letters:
    """An empty log; no broker is at the address in the configuration."""
    world = World(tmp_path, stores='on_bad_record = "dead-letter"')
    source = FakeSource({world.source: Watermarks(0, 0)}).opened(monkeypatch)
    return Letters(world, source)


def test_a_letter_has_the_key_and_headers_that_the_source_gives(letters: Letters) -> None:
    """They do not travel with the record, so the log is read again for them."""
    letters.produce(row(1))
    letters.log()[0] = letters.log()[0]._replace(key=b"k", headers=(("h", b"1"),))
    letters.store(0)
    (shown,) = json.loads(letters.run("show", letters.place(0), "--json").stdout)
    assert shown["key"] == {"text": "k"}
    assert shown["headers"] == [["h", {"text": "1"}]]
    assert [each["id"] for each in letters.listed()] == [letters.place(0)]


def test_a_replay_appends_to_the_source(letters: Letters) -> None:
    """As the record was, with the header that names its first place."""
    letters.produce(row(1))
    letters.store(0)
    done = letters.run("replay", "--all", "--execute")
    assert (done.exit_code, done.stderr) == (0, "")
    first, again = letters.log()
    assert (again.key, again.value) == (first.key, first.value)
    assert again.headers == (("binlogd.replayed", letters.place(0).encode()),)
    (letter,) = letters.listed()
    assert (letter["state"], letter["replayed"]["at"]) == ("replayed", letters.place(1))


def test_without_execute_the_source_is_only_read(letters: Letters) -> None:
    letters.produce(row(1))
    letters.store(0)
    letters.source.append_error = AssertionError("it is not for a dry run")
    done = letters.run("replay", "--all")
    assert done.exit_code == 0
    assert f"{letters.place(0)} would be appended to {letters.world.source}" in done.stdout
    assert len(letters.log()) == 1


def test_a_newer_change_of_the_row_refuses_the_replay(letters: Letters) -> None:
    """Status 1, since the other one is replayed; the line below says which command is right."""
    letters.produce(row(1), row(2), row(1, "UPDATE"))
    letters.store(0, 1)
    done = letters.run("replay", "--all", "--execute")
    assert done.exit_code == 1
    assert f"{letters.place(0)}: {TARGET}: its row 1 changed since, offset 2" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        f"offsets reset --to offset --at 0 --topic {letters.world.topic} --partition 0 "
        f"--table {TARGET}"
    )
    assert [each.value for each in letters.log()[3:]] == [row(2)]


def test_a_change_that_overtakes_the_append_takes_it_back(letters: Letters) -> None:
    """It was written after the plan and stands before the record's new place."""
    letters.produce(row(1))
    letters.store(0)
    letters.source.overtaking = [row(1, "UPDATE")]
    done = letters.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert "its row 1 changed since, offset 1" in done.stderr
    assert [each.value for each in letters.log()] == [row(1), row(1, "UPDATE")]
    assert letters.listed()[0]["state"] == "open"


def test_a_log_that_lost_what_came_between_is_doubted(letters: Letters) -> None:
    letters.produce(row(1), row(2), row(3))
    letters.store(0)
    letters.source.logs[letters.world.source] = Watermarks(2, 3)
    done = letters.run("replay", "--all")
    assert done.exit_code == 2
    assert "the log begins at 2: what came in between is unknown" in done.stderr


def test_a_compacted_topic_is_doubted(letters: Letters) -> None:
    letters.produce(row(1))
    letters.store(0)
    letters.source.compact = frozenset([letters.world.topic])
    done = letters.run("replay", "--all")
    assert "the topic is compacted: records in between may be missing" in done.stderr


def test_a_record_that_is_still_bad_is_refused_even_by_force(letters: Letters) -> None:
    letters.produce(row(None))
    letters.store(0)
    done = letters.run("replay", "--all", "--execute", "--force")
    assert done.exit_code == 2
    assert "it can't be applied yet" in done.stderr


def test_a_source_that_refuses_appends_is_one_line_and_status_2(letters: Letters) -> None:
    letters.produce(row(1))
    letters.store(0)
    letters.source.append_error = AppendRefused("it reads uncommitted records")
    done = letters.run("replay", "--all", "--execute")
    assert (done.exit_code, done.stderr) == (2, "binlogd: it reads uncommitted records\n")


def test_a_source_that_is_away_is_one_line_and_status_1(letters: Letters) -> None:
    """Nothing is decided then; files are listed all the same."""
    letters.produce(row(1))
    letters.store(0)
    letters.source.away = True
    done = letters.run("replay", "--all")
    assert done.exit_code == 1
    assert done.stderr == "binlogd: the broker can't be queried: nobody is there\n"
    assert len(letters.listed()) == 1


def test_an_unknown_outcome_is_found_out_by_the_next_run(letters: Letters) -> None:
    """It sees the record in the log, marks the letter and appends nothing."""
    letters.produce(row(1))
    letters.store(0)
    letters.source.commit_error = OutcomeUnknown("no answer")
    done = letters.run("replay", "--all", "--execute")
    assert done.exit_code == 1
    assert "whether the records were appended is not known" in done.stderr
    assert letters.listed()[0]["state"] == "open"
    letters.source.commit_error = None
    done = letters.run("replay", "--all", "--execute")
    assert done.exit_code == 2
    assert "it was replayed already: offset 1 has it again" in done.stderr
    assert len(letters.log()) == 2
    assert letters.listed()[0]["state"] == "replayed"

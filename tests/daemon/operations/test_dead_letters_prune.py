"""``binlogd dead-letters prune``: on the files of a stopped daemon, and of one that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.dead_letters.files import (
    add_mark,
    letter_files,
    letters_path,
    read_files,
    read_marks,
)
from daemon.state.offset_file import lock_state_dir
from settings.exit import Exit
from sources import opening
from sources.base.letter import LetterId, Mark
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.state.dead_letters.letters import S0, TARGET, dead, maker, store

LETTERS = 'on_bad_record = "dead-letter"'


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """A daemon that is not started yet, with letters 0 to 5 of nine days ago in full files, the
    first of them replayed, and letter 6 stored just now."""
    log = Log()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, pipeline("p", "t", "a", LETTERS))
    state = tmp_path / "state"
    state.mkdir()
    for days, offsets in ((9, range(6)), (0, [6])):
        letters = store(state, maker(when=datetime.now(UTC) - timedelta(days=days)), 1500)
        for offset in offsets:
            letters.keep(dead(offset))
    add_mark(state, Mark.now(LetterId("p", S0, 0, str(TARGET)), "binlog:0:9"))
    assert len(letter_files(state, "p")) > 2
    with capture_logs():
        yield made


def prune(flow: Flow, *words: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", "prune", *words, "-c", str(flow.config)])


def left(flow: Flow) -> list[int]:
    damage: list[str] = []
    return [letter.id.offset for letter in read_files(flow.folder / "state", "p", damage)]


def test_nothing_goes_without_execute(flow: Flow) -> None:
    """It says how many would, and how many of them nobody replayed."""
    said = prune(flow, "--older-than", "7d")
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout == (
        "p: dead letters in files, older than 7d: 6, of which 5 were never replayed\n"
        "nothing was changed: --execute does it\n"
    )
    assert left(flow) == list(range(7))


def test_without_a_daemon_the_command_does_it(flow: Flow) -> None:
    """Once: then nothing is left to do. Full files go, what is younger stays."""
    done = prune(flow, "--older-than", "7d", "--execute", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["result"] == {"pipeline": "p", "open": 5, "replayed": 1, "removed": 6}
    assert (document["lines"][-1], left(flow)) == ("p: 6 removed", [6])
    assert len(letter_files(flow.folder / "state", "p")) == 1
    marks = {mark.id.offset: mark.state for mark in read_marks(flow.folder / "state", "p", [])}
    assert marks == {0: "replayed"} | dict.fromkeys(range(1, 6), "discarded")
    again = prune(flow, "--older-than", "7d", "--execute")
    assert (again.exit_code, left(flow)) == (0, [6])
    assert again.stdout.endswith("p: 0 removed\n")


def test_a_running_daemon_does_it_and_goes_on(flow: Flow) -> None:
    """What can't be applied afterwards is a letter as before."""
    flow.start()
    done = prune(flow, "--older-than", "7d", "--execute")
    assert (done.exit_code, left(flow)) == (0, [6]), done.output
    flow.log.produce("t", b"no message")
    flow.insert("t", "a")
    flow.applied("a", 1)
    flow.until(lambda: left(flow) == [6, 0])
    flow.stop()


def test_what_is_damaged_is_told_and_stays(flow: Flow) -> None:
    path = letters_path(flow.folder / "state", "p")
    with path.open("ab") as file:
        file.write(b'{"offset": 2, "crc32": 1}\n')
    done = prune(flow, "--older-than", "7d", "--execute")
    assert done.exit_code == 0
    assert done.stderr.endswith("is damaged\n")
    assert path.read_bytes().endswith(b'"crc32": 1}\n')


@pytest.mark.parametrize(
    ("age", "why"),
    [
        ("59m", "an hour at least"),
        ("soon", "or 2h, is required, not 'soon'"),
        ("99999999999d", "--older-than"),
    ],
)
def test_an_age_that_is_none_is_refused(flow: Flow, age: str, why: str) -> None:
    done = prune(flow, "--older-than", age, "--execute")
    assert (done.exit_code, left(flow)) == (2, list(range(7)))
    assert why in done.stderr


def test_another_process_has_the_state_directory(flow: Flow) -> None:
    """Such as a daemon that is about to start."""
    with lock_state_dir(flow.folder / "state"):
        done = prune(flow, "--older-than", "7d", "--execute")
    assert (done.exit_code, left(flow)) == (2, list(range(7)))


def test_positions_in_kafka_alone_are_not_asked_for(flow: Flow) -> None:
    """The letters are in files: no broker is needed."""
    flow.config.write_text(flow.config.read_text().replace('["file"]', '["kafka-commit"]'))
    done = prune(flow, "--older-than", "7d", "--execute")
    assert (done.exit_code, left(flow)) == (0, [6]), done.output


def test_a_pipeline_that_had_stopped_stays_so(flow: Flow) -> None:
    """What stopped it is still there, such as too many bad records."""
    one = "max_bad_records_per_hour = 1"
    flow.write(pipeline("p", "t", "a", f"{LETTERS}\n{one}") + pipeline("q", "u", "b"))
    flow.start()
    flow.log.produce("t", b"no message", b"nor this")
    flow.until(lambda: flow.pipelines()["p"]["stage"] == "ended")
    done = prune(flow, "--older-than", "7d", "--pipeline", "p", "--execute")
    assert (done.exit_code, left(flow)[0]) == (0, 6), done.output
    assert flow.pipelines()["p"]["stage"] == "ended"
    assert "bad records" in flow.pipelines()["p"]["failure"]
    flow.stop(Exit.PIPELINE_FAILED)


def test_a_file_that_cannot_be_rewritten(flow: Flow) -> None:
    """Status 1, as what was removed before stays removed. The pipeline goes on."""
    flow.start()
    first = letter_files(flow.folder / "state", "p")[0]
    first.with_suffix(".kept").mkdir()
    done = prune(flow, "--older-than", "7d", "--execute")
    assert (done.exit_code, left(flow)) == (1, list(range(7)))
    assert "Is a directory" in done.stderr
    flow.insert("t", "a")
    flow.applied("a", 1)
    flow.stop()

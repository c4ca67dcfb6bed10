"""The contract of every operation, on a whole daemon or the files of a stopped one.

A plan changes nothing. Text and JSON say the same. A step may be repeated. What undoes it does.
An operation that is added without a line in ``CASES`` fails here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer.main
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.cli.base.operations import LOSES
from daemon.operations.engine.operation import options_of, parsed
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import JobRequest, State, new_job
from daemon.operations.engine.store import JobStore
from daemon.operations.load.kind import LoadKind
from daemon.operations.registry import operations
from daemon.operations.verify.job.kind import VerifyKind
from daemon.state.edits import EditRefused
from sources import opening
from sources.kafka.topics import KafkaTopics
from tests.collector.stub_connect import NoTopics, stub_connect
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.state.dead_letters.letters import dead, maker, store
from tests.daemon.test_flow import QUARANTINE, refuse
from tests.test_ratchet import ROOT

A = "copy.shop.a"


@dataclass(frozen=True)
class Case:
    """``given``: as people type it, after the command's words. ``before``: what leads to it.
    ``again``: the statuses that a second time may end with. ``undo``: the command that takes it
    back, where the state's files are as before then."""

    given: str
    before: Callable[[Flow], object] = lambda flow: None
    again: tuple[int, ...] = (0,)
    undo: str = ""
    changes: bool = True


def other_file(flow: Flow) -> None:
    flow.write(pipeline("p", "t", "[abc]", QUARANTINE))


def refused(flow: Flow) -> None:
    """Table b is in quarantine."""
    refuse(flow, "p")
    settled(flow)


def without_b(flow: Flow) -> None:
    """And no route wants it any more."""
    refused(flow)
    flow.stop()
    flow.write(pipeline("p", "t", "a", QUARANTINE))


def a_job(flow: Flow, state: State = State.PLANNED) -> None:
    """A job that waits for a daemon."""
    flow.stop()
    job = replace(new_job(JobRequest("rebuild", "p", (A,)), 1, "load-1"), state=state)
    job = replace(job, wanted=replace(job.wanted, kind="load"))
    JobStore(flow.folder / "state").save(job)


def paused(flow: Flow) -> None:
    flow.did("pause", name="p")


def an_old_letter(flow: Flow) -> None:
    """Beside which the daemon runs."""
    made_by = maker(when=datetime.now(UTC) - timedelta(days=2))
    store(flow.folder / "state", made_by).keep(dead())


def exported(flow: Flow) -> None:
    """The positions, with an older frontier."""
    flow.stop()
    text = run(flow, "offsets export --pipeline p").stdout
    Path("shop.json").write_text(text.replace('"frontier": 20', '"frontier": 19'))


def a_collector(flow: Flow) -> None:
    """In a Connect cluster that exists; its database is away."""
    flow.stop()
    text = flow.config.read_text()
    text = text.replace("[pipeline.p]", f"{COLLECTOR.format(url=flow.connect)}[pipeline.p]", 1)
    flow.config.write_text(text)
    flow.start()
    flow.until(lambda: flow.ask("status")["collectors"][0]["state"] == "source away")


COLLECTOR = """
[database.away]
url = "mysql://127.0.0.1:1/"
user = "u"
[collector.shop]
database = "away"
topic = "t"
connect = "{url}"
references = {{ "database.password" = "file:/x:y" }}
"""


CASES = {
    "reload": Case("", other_file, changes=False),
    "pause": Case("p --reason why", undo="resume p"),
    "resume": Case("p", paused),
    "drain": Case("p --wait", undo="resume p"),
    "log-level": Case("debug", changes=False),
    "offsets import": Case("shop.json", exported),
    "offsets move": Case("", lambda flow: flow.stop()),
    "offsets reset": Case("--to earliest"),
    "tables retry": Case("copy.shop.b", refused, (0, 2), changes=False),
    "tables rebuild": Case(A, lambda flow: flow.stop(), (2,), f"tables rebuild {A} --cancel"),
    "tables load": Case("shop.a"),
    "tables verify": Case("shop.a", again=(2,)),
    "tables discard": Case("copy.shop.b", without_b, (2,)),
    "jobs pause": Case("load-1", a_job, (2,), "jobs resume load-1"),
    "jobs resume": Case("load-1", lambda flow: a_job(flow, State.PAUSED), (2,)),
    "jobs cancel": Case("load-1", a_job),
    "dead-letters replay": Case("--all", again=(2,), changes=False),
    "dead-letters discard": Case("--all", an_old_letter),
    "dead-letters prune": Case("--older-than 1d", an_old_letter),
    "collector pause": Case("shop", a_collector, undo="collector resume shop", changes=False),
    "collector resume": Case("shop", a_collector, changes=False),
    "collector restart": Case("shop", a_collector, changes=False),
    "collector reset": Case("shop", a_collector),
    "collector remove": Case("shop", a_collector, undo="collector resume shop"),
}

REFUSED = {
    "dead-letters replay": "no dead letter is meant by that",
    "offsets move": "there is no log of an embedded broker in {state}/broker",
}
"""What this daemon has nothing for: done in tests of their own, with a broker."""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """A daemon that has written 20 rows of a table; loads and verifications would find that one."""
    log = Log()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    for kind in (LoadKind, VerifyKind):
        monkeypatch.setattr(kind, "plan", planned)
    monkeypatch.setattr(KafkaTopics, "of_collectors", lambda _: NoTopics())
    made = Flow(tmp_path, log, pipeline("p", "t", "[ab]", QUARANTINE))
    with capture_logs(), stub_connect() as (made.connect, _):
        made.start()
        made.insert("t", "a", 20)
        made.applied("a", 20)
        settled(made)
        yield made
        if not made.ended_already():
            made.stop()


def planned(self: Any, look: Any, wanted: JobRequest) -> Plan:
    params = {**wanted.params, "tables": ["shop.a"], "sample": 1.0}
    whole = replace(wanted, targets=(A,), params=params)
    return Plan((whole,), (f"{A}: by plan",), {"patterns": list(wanted.targets)})


def settled(flow: Flow) -> None:
    """All is written, and recorded."""
    file, end = flow.folder / "state" / "p.offsets.json", flow.log.end("t")
    flow.until(lambda: file.exists() and f'"frontier": {end}' in file.read_text())


def run(flow: Flow, words: str) -> Result:
    command = [*shlex.split(words), "-c", str(flow.config)]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


def files(flow: Flow) -> dict[str, bytes]:
    """The state's files, but for the previous edition of the offsets."""
    found = [path for path in (flow.folder / "state").rglob("*") if path.is_file()]
    left_out = ("previous", ".new")  # the latter is about to take its name
    return {
        str(path): path.read_bytes()
        for path in sorted(found)
        if not any(word in path.name for word in left_out)
    }


def test_each_operation_has_its_case() -> None:
    assert CASES.keys() == operations().keys()


def test_each_operation_has_its_row() -> None:
    """In the docs: whether it can lose something, and what takes it back."""
    text = (ROOT / "docs" / "change.md").read_text()
    for words, operation in operations().items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{words}` |"))
        cells = [cell.strip() for cell in row.split("|")[2:5]]
        back = operation.undone_by and f"`{operation.undone_by}`"
        assert (cells[0] == "**yes**", cells[2]) == (operation.loses, back)


@pytest.mark.parametrize("words", sorted(CASES))
def test_a_dry_run_changes_nothing_and_json_says_the_same(words: str, flow: Flow) -> None:
    """And where it can lose something, it is what happens without ``--execute``."""
    case, operation = CASES[words], operations()[words]
    case.before(flow)
    before, end = files(flow), flow.log.end("t")
    shown = run(flow, f"{words} {case.given} --dry-run")
    told = run(flow, f"{words} {case.given} --dry-run --json")
    document = json.loads(told.stdout)
    if words in REFUSED:
        assert shown.exit_code == 2
        assert document["problems"] == [REFUSED[words].format(state=flow.folder / "state")]
    else:
        assert (shown.exit_code, told.exit_code) == (0, 0), shown.output
    if operation.plain_json:
        assert document == [{"patterns": ["shop.a"]}]
        assert shown.stdout == f"{A}: by plan\n"
    else:
        assert (document["operation"], document["dry_run"]) == (words, True)
        assert (document["status"], document["lines"]) == (
            shown.exit_code, shown.stdout.splitlines(),
        )  # fmt: skip
    if operation.loses:
        default = run(flow, f"{words} {case.given}")
        assert (default.exit_code, default.stdout) == (shown.exit_code, shown.stdout)
        both = run(flow, f"{words} {case.given} --dry-run --execute")
        assert (both.exit_code, both.stderr) == (2, "binlogd: --dry-run or --execute, not both\n")
    assert (files(flow), flow.log.end("t")) == (before, end)


@pytest.mark.parametrize("words", sorted(CASES))
def test_it_is_done_may_be_repeated_and_is_undone(words: str, flow: Flow) -> None:
    case, operation = CASES[words], operations()[words]
    case.before(flow)
    before = files(flow)
    execute = " --execute" if operation.loses else ""
    done = run(flow, f"{words} {case.given}{execute}")
    if words in REFUSED:
        assert done.exit_code == 2
        return
    if operation.plain_json:
        return  # its job needs a database: tests/integration
    assert done.exit_code == 0, done.output
    assert (files(flow) != before) or not case.changes
    again = run(flow, f"{words} {case.given}{execute}")
    assert again.exit_code in case.again, again.output
    assert again.exit_code == 0 or again.stderr.startswith("binlogd: ")
    if case.undo:
        assert case.undo.startswith(operation.undone_by.split(" --")[0])
        undone = run(flow, case.undo)
        assert undone.exit_code == 0, undone.output
        if words in ("pause", "drain"):
            assert json.loads((flow.folder / "state/pauses.json").read_bytes())["paused"] == {}


@pytest.mark.parametrize("words", sorted(CASES))
def test_help_says_whether_it_can_lose_something(words: str) -> None:
    """The options that all have are there."""
    operation: Any = operations()[words]
    command: Any = typer.main.get_command(app)
    for word in words.split():
        command = command.commands[word]
    options = {flag for param in command.params for flag in param.opts}
    assert {"--dry-run", "--json", "--config"} <= options
    assert ("--execute" in options, LOSES in command.help) == (operation.loses, operation.loses)
    assert {name for name, _ in options_of(operation.params)} <= {p.name for p in command.params}


@pytest.mark.parametrize("words", sorted(CASES))
def test_an_unknown_parameter_is_refused_by_name(words: str) -> None:
    with pytest.raises(EditRefused, match="nonsense: Extra inputs are not permitted"):
        parsed(operations()[words], {"nonsense": 1})


@pytest.mark.parametrize(
    "words", [words for words, each in operations().items() if each.needs_daemon]
)
def test_without_a_daemon_it_says_so(words: str, flow: Flow) -> None:
    """Status 3, with what the daemon is needed for."""
    flow.stop()
    done = run(flow, f"{words} {CASES[words].given}")
    assert done.exit_code == 3
    assert done.stderr.endswith(f": {operations()[words].needs_daemon}\n")

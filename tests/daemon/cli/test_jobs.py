"""``binlogd jobs``: texts, documents and exit statuses, with a daemon and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.operations.automatic_loads import AutomaticLoads
from daemon.operations.engine.desk import Desk
from daemon.operations.engine.record import Job, JobProgress, JobRequest, State, new_job
from daemon.operations.engine.store import JobStore
from daemon.operations.figures import LoadRefused
from daemon.operations.load.plan import FIRST_SIGHT
from daemon.operations.rebuild.kind import KIND
from daemon.operations.registry import operations
from daemon.operations.service import JobsDesk
from daemon.state.control import ControlServer
from daemon.state.offset_file import OffsetFile, lock_state_dir
from offsets.rebuild_steps import begun
from offsets.recovery import Watermarks
from tests.daemon.operations.job_rig import JobRig
from tests.daemon.state.test_offset_transfer import World
from tests.sources.fake_source import FakeSource

RUNNING = replace(
    new_job(JobRequest("load", "shop", ("lake.s.t",), {"rows": 7}), 1_700_000_000_000, "load-1"),
    state=State.RUNNING,
    progress=JobProgress(1_200, 5_000, "rows", 100.0, 38.0),
    message="reads rows",
    started_ms=1_700_000_001_000,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A state directory with one job that was under way."""
    made = World(tmp_path)
    JobStore(made.state).save(RUNNING)
    return made


def run(world: World, *words: str) -> Result:
    command = [*words, "-c", str(world.folder / "config.toml")]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


def stored(world: World) -> Job:
    return JobStore(world.state).load().jobs[0]


def test_recorded_jobs_are_listed(world: World) -> None:
    """For people and for programs."""
    shown = run(world, "jobs", "list")
    assert shown.exit_code == 0, shown.output
    words = ("load-1", "running", "lake.s.t", "1,200 of 5,000 rows (24 %)", "100 rows/s", "38 s")
    assert [word for word in words if word not in shown.stdout] == []
    (row,) = json.loads(run(world, "jobs", "list", "--json").stdout)
    assert (row["job"], row["state"], row["progress"]["ratio"]) == ("load-1", "running", 0.24)


def test_one_job_is_shown_in_full(world: World) -> None:
    """What was asked for, and when."""
    shown = run(world, "jobs", "show", "load-1")
    assert shown.exit_code == 0
    assert '{"rows": 7}' in shown.stdout
    assert "2023-11-14 22:13:20 UTC" in shown.stdout
    document = json.loads(run(world, "jobs", "show", "load-1", "--json").stdout)
    assert (document["params"], document["memory"]) == ({"rows": 7}, {})
    missing = run(world, "jobs", "show", "load-2")
    assert (missing.exit_code, missing.stderr) == (2, "binlogd: job load-2: unknown\n")


def test_without_jobs_the_list_is_empty(tmp_path: Path) -> None:
    """Not an error."""
    done = run(World(tmp_path), "jobs", "list", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])


def test_a_load_that_nobody_asked_for_is_shown_without_a_daemon(tmp_path: Path) -> None:
    """It is not recorded: what is stored says that it is due, or can't be read."""
    world = World(tmp_path, stores='database = "src"\nload = "on-first-sight"')
    with (world.folder / "config.toml").open("a") as file:
        file.write('[database.src]\nurl = "jdbc:mysql://127.0.0.1:1/"\nuser = "u"\n')
    OffsetFile(world.state, "shop").save(world.snapshot(8, 8, hwm=7))
    assert json.loads(run(world, "jobs", "list", "--json").stdout) == []
    seen = world.state / "seen" / "shop.json"
    seen.parent.mkdir()
    seen.write_text("[]")
    (row,) = json.loads(run(world, "jobs", "list", "--json").stdout)
    assert (row["job"], row["state"], row["created_ms"]) == ("unasked:lake.s.t", "due", None)
    shown = run(world, "jobs", "show", "unasked:lake.s.t")
    assert shown.exit_code == 0, shown.output
    assert "planned after the next start, or by `binlogd tables load lake.s.t`" in shown.stdout
    assert run(world, "jobs", "show", "unasked:lake.s.u").exit_code == 2
    refused = run(world, "jobs", "cancel", "unasked:lake.s.t")
    assert (refused.exit_code, "is no job yet" in refused.stderr) == (2, True)
    seen.write_text("[")
    listed = run(world, "jobs", "list", "--json")
    assert (listed.exit_code, json.loads(listed.stdout)) == (1, [])
    assert "pipeline.shop: which loads are due is not known" in listed.stderr


def test_a_damaged_file_is_told_by_the_status_too(world: World) -> None:
    """A list that may be short of jobs is not one in good order."""
    file = world.state / "jobs" / "load-1.json"
    file.write_text(file.read_text().replace("5000", "6000"))
    done = run(world, "jobs", "list", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, [])
    assert f"binlogd: {file}: the checksum does not match" in done.stderr


def test_what_is_asked_while_no_daemon_runs_is_recorded(world: World) -> None:
    """The next start follows."""
    paused = run(world, "jobs", "pause", "load-1")
    assert (paused.exit_code, stored(world).state) == (0, State.PAUSED)
    assert "load-1 pauses after the step under way, from the next start on" in paused.stdout
    again = run(world, "jobs", "pause", "load-1")
    assert (again.exit_code, again.stderr) == (2, "binlogd: job load-1 is paused already\n")
    assert run(world, "jobs", "resume", "load-1").exit_code == 0
    assert stored(world).state is State.WAITING
    assert run(world, "jobs", "cancel", "load-1").exit_code == 0
    assert stored(world).wish == "cancel"
    assert run(world, "jobs", "resume", "load-1").exit_code == 2
    assert run(world, "jobs", "cancel", "load-9").exit_code == 2


def test_a_state_directory_in_use_is_not_written(world: World) -> None:
    """A daemon that starts, and does not answer yet, would overwrite it."""
    with lock_state_dir(world.state):
        done = run(world, "jobs", "pause", "load-1")
    assert done.exit_code == 2
    assert "is used by another binlogd" in done.stderr
    assert stored(world) == RUNNING


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobRig]:
    """The jobs of a running daemon behind its control socket, and one rebuild under way."""
    rig = JobRig(tmp_path)
    FakeSource({rig.world.source: Watermarks(0, 20)}).opened(monkeypatch)
    desk = JobsDesk(rig.daemon)
    answers = {**desk.answers, **Desk(rig.lent(desk.runner), operations()).answers}
    server = ControlServer(rig.config.daemon.state_dir, answers)
    server.start()
    desk.open()
    desk.start()
    rig.runner = desk.runner
    desk.runner.add(JobRequest(KIND, "shop", ("lake.s.t",)), "rebuild-7").result(30)
    rig.wait("rebuild-7", lambda job: "begun" in job.memory)
    yield rig
    server.close()
    desk.stop()


def test_a_running_daemon_is_asked(served: JobRig) -> None:
    """And does what is asked at once."""
    (row,) = json.loads(run(served.world, "jobs", "list", "--json").stdout)
    assert (row["job"], row["progress"]["unit"]) == ("rebuild-7", "messages")
    assert run(served.world, "jobs", "show", "rebuild-7").exit_code == 0
    refused = run(served.world, "jobs", "pause", "rebuild-7")
    assert refused.exit_code == 2
    assert "can't be paused" in refused.stderr
    done = run(served.world, "jobs", "cancel", "rebuild-7")
    # The job's own log may stand beside it.
    assert (done.exit_code, "from the next start on" in done.stdout) == (0, False)
    assert served.ended("rebuild-7").state is State.CANCELLED
    assert run(served.world, "jobs", "show", "other").exit_code == 2


def test_a_refused_load_is_shown(served: JobRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the list names it."""
    refused = LoadRefused("shop", "lake.s.u", FIRST_SIGHT, "it is a view", 1_700_000_000_000)
    monkeypatch.setattr(AutomaticLoads, "refused", (refused,))
    row = json.loads(run(served.world, "jobs", "list", "--json").stdout)[-1]
    document = json.loads(run(served.world, "jobs", "show", row["job"], "--json").stdout)
    assert (document["state"], document["job"]) == ("refused", "unasked:lake.s.u")
    assert "it is a view; it is planned again within 10 minutes" in document["message"]
    assert run(served.world, "jobs", "show", row["job"]).exit_code == 0


def test_a_rebuild_is_recorded_as_a_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While no daemon runs: the edit, then the job of it; and both are given up."""
    OffsetFile(world.state, "shop").save(world.snapshot(8, 8, hwm=7))
    FakeSource({world.source: Watermarks(0, 20)}, commits={world.source: 8}).opened(monkeypatch)
    assert run(world, "tables", "rebuild", "lake.s.t").exit_code == 0
    recorded = world.recorded()
    assert recorded is not None
    into = recorded.rebuilds["lake.s.t"].into
    job = JobStore(world.state).load().jobs[-1]
    assert (job.state, into.rpartition("_")[2]) == (State.RUNNING, job.id.rpartition("-")[2])
    assert run(world, "tables", "rebuild", "lake.s.t", "--cancel").exit_code == 0
    recorded = world.recorded()
    assert recorded is not None
    assert recorded.rebuilds["lake.s.t"].cancelled
    assert JobStore(world.state).load().jobs[-1].wish == "cancel"


def test_a_rebuild_without_a_job_gets_one_at_the_start(tmp_path: Path) -> None:
    """A file that can't be read is not written over: a newer version may have made it."""
    rig = JobRig(tmp_path)
    snapshot = rig.store.snapshot
    low = {rig.world.source: 0}
    for target, number in (("lake.s.t", "7"), ("lake.s.u", "8")):
        snapshot = begun(snapshot, target, f"{target}__rebuild_{number}", low, keep_old=False)
    rig.store.snapshot = snapshot
    damaged = rig.files.folder / "rebuild-8.json"
    damaged.parent.mkdir()
    damaged.write_text("{}")
    desk = JobsDesk(rig.daemon)
    desk.open()
    assert [job.id for job in desk.runner.jobs] == ["rebuild-7"]
    assert damaged.read_text() == "{}"


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ('signals_topic = "TOPIC"', "jobs.signals_topic: 'TOPIC' is read by pipeline.shop"),
        ('signals_topic = "a"\nnotifications_topic = "a"', "is the signals_topic, too"),
        ("keep = 0", "jobs.keep: "),
        ("every = 1", "; allowed: keep, notifications_topic, signals_topic"),
    ],
)
def test_the_section_is_checked(world: World, section: str, problem: str) -> None:
    """With the key that is wrong."""
    path = world.folder / "config.toml"
    path.write_text(path.read_text() + f"[jobs]\n{section.replace('TOPIC', world.topic)}\n")
    done = run(world, "jobs", "list")
    assert done.exit_code == 2
    assert problem.replace("TOPIC", world.topic) in done.stderr


def test_the_section_may_be_left_out(world: World) -> None:
    """Then there is no topic."""
    section = load(world.folder / "config.toml").jobs
    assert (section.keep, section.notifications_topic, section.signals_topic) == (50, "", "")

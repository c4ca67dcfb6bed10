"""``kill -9`` and ``jobs cancel`` at the stages of jobs that last.

At each stage that something can hold for long (the source's table is locked, the log is quiet, the
target is read by a transaction that does not end) the daemon is killed, goes on, and the job is
cancelled: it ends so, its table is as it was and goes on, and the other one has not waited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pymysql
import pytest

from daemon.operations.engine.record import STAGES, Job, JobRequest, State, new_job
from daemon.operations.engine.store import JobStore
from tests.databases.base.servers import Server, within
from tests.integration.loads.orders import beat
from tests.integration.rig import Rig
from tests.integration.test_jobs_end_alone import (
    World,
    in_mariadb,
    in_postgres,
    in_sqlite,
    postgres,
    source,
)
from tests.live.program import HOST
from tests.sparkwriter.databases import Server as Sink

__all__ = ["postgres", "source"]  # fixtures

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@contextmanager
def _session(port: int, *statements: str) -> Iterator[None]:
    """A session of MariaDB that stays within a transaction, or with its locks."""
    connection = pymysql.connect(host=HOST, port=port, user="live", password="live")
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        yield
    finally:
        connection.close()


@contextmanager
def _postgres(sink: Sink, *statements: str) -> Iterator[None]:
    session = sink.connect()
    try:
        for statement in statements:
            session.run(statement)
        yield
    finally:
        session.close()


Held = Callable[[], AbstractContextManager[None]]


class Walk:
    """One sink's daemon, the server of its source, and a transaction that reads the target."""

    def __init__(self, world: World, source: Server, target_read: Held) -> None:
        self.world, self._port, self.target_read = world, source.port, target_read
        self.keys = [1]
        world.has(1)

    @contextmanager
    def source_locked(self) -> Iterator[None]:
        """Nobody reads the source's table."""
        with _session(self._port, f"LOCK TABLES {self.world.rig.db}.orders WRITE"):
            yield

    def begun(self, kind: str, **params: Any) -> None:
        """A job, recorded while no daemon runs: a plan would wait for the lock on the source."""
        if kind != "rebuild":
            params |= {"tables": [f"{self.world.rig.db}.orders"]}
        now_ms = time.time_ns() // 1_000_000
        job = new_job(JobRequest(kind, "p", (self.world.target,), params), now_ms)
        self.world.life.kill(lambda: JobStore(self.world.rig.folder / "state").save(job))

    def stands(self, kind: str, at: str) -> Job:
        """The last job of the kind, once it is there and has not ended."""
        found: list[Job] = []

        def look() -> bool:
            found[:] = self.world.life.jobs(kind)[-1:]
            assert not found or not found[0].state.is_final, found
            return bool(found) and stage_of(found[0], self.world.target) == at

        within(90, look)
        return found[0]

    def left(self, kind: str, at: str) -> None:
        """Killed there, it goes on; cancelled, its table is as it was."""
        assert at in STAGES[kind]
        job = self.stands(kind, at)
        self.world.life.kill()
        self.stands(kind, at)
        self.world.command("jobs", "cancel", job.id)
        within(90, lambda: self.world.life.jobs(kind)[-1].state.is_final)
        assert self.world.life.jobs(kind)[-1].state is State.CANCELLED

    def goes_on(self) -> None:
        """Both tables, with what they had and a row more: no row came by the job."""
        self.keys.append(self.keys[-1] + 3 if len(self.keys) == 1 else self.keys[-1] + 1)
        self.world.insert(self.keys[-1])
        self.world.has(*self.keys)
        self.world.others_go_on()
        assert not self.world.rig.snapshot().rebuilding


def stage_of(job: Job, target: str) -> str:
    """As ``daemon.operations.engine.record`` names it; "new" before its first step."""
    match job.wanted.kind:
        case "load":
            return str(job.memory.get("targets", {}).get(target, {}).get("stage", "new"))
        case "rebuild":
            return "refused now" if "can't take its name yet" in job.message else "filling"
        case _:
            return "new" if job.started_ms is None else "comparing"


@pytest.fixture
def walk(request: Any, rig: Rig, source: Server) -> Iterator[Walk]:
    schema = f"{rig.db}_c"

    def read() -> AbstractContextManager[None]:
        if request.param == "postgres":
            lock = f"LOCK TABLE {schema}.orders IN ACCESS SHARE MODE"
            return _postgres(request.getfixturevalue("postgres"), "BEGIN", lock)
        return _session(source.port, "BEGIN", f"SELECT * FROM {schema}.orders")

    match request.param:
        case "sqlite":
            copy = in_sqlite(rig.folder / "copy.db", schema)
        case "postgres":
            copy = in_postgres(request.getfixturevalue("postgres"), schema)
        case _:
            copy = in_mariadb(source, schema)
    copy.section.append("write_timeout_s = 3.0")
    world = World(rig, source, copy)
    yield Walk(world, source, read)
    world.life.process.kill()


@pytest.mark.parametrize("walk", ["sqlite"], indirect=True)
def test_killed_and_cancelled_while_a_load_waits_for_its_source(walk: Walk) -> None:
    """The other stages of a load are a step long, and the rule's machine walks them."""
    with walk.source_locked():
        walk.begun("load")
        walk.left("load", "filling")
    walk.goes_on()
    walk.begun("load")
    walk.left("load", "filled")
    walk.goes_on()


@pytest.mark.parametrize("walk", ["postgres", "mariadb"], indirect=True)
def test_killed_and_cancelled_where_a_lock_lasts(walk: Walk) -> None:
    """The exchange of names waits for a lock, a write of the other table does not; and so it is
    while a comparison waits for the source's."""
    with walk.source_locked():
        walk.begun("verify", repair=True, sample=1.0)
        walk.left("verify", "comparing")
    walk.goes_on()
    walk.begun("load")
    walk.stands("load", "filled")
    with walk.target_read():
        beat(walk.world.rig, ahead_s=60.0)
        walk.left("load", "following")
    walk.goes_on()
    with walk.target_read():
        walk.begun("rebuild")
        walk.left("rebuild", "refused now")
    walk.goes_on()

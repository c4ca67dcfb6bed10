"""Every thread of the daemon outlives what goes wrong in one of its rounds, or ends the daemon."""

from __future__ import annotations

import ast
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from actors.runtime.periodic import Periodic
from daemon.admin import minutes
from daemon.admin.events import watch
from daemon.admin.events.watch import EventWatch
from daemon.admin.minutes import MinuteLog
from daemon.admin.page import document as desk
from daemon.admin.page.document import PageDesk
from daemon.admin.service_manager import Monitor, Notifier
from daemon.operations import automatic_loads as unasked
from daemon.operations import verify_schedule as schedule
from daemon.operations.automatic_loads import AutomaticLoads
from daemon.operations.engine.port import JobKind
from daemon.operations.engine.record import Job, State
from daemon.operations.engine.store import JobStore
from daemon.operations.signal_reader import SignalReader
from daemon.operations.verify_schedule import VerifySchedule
from settings.exit import Exit
from sources import opening
from sources.base import log_watch
from sources.base.log_watch import LogWatch
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.operations.job_rig import JobRig
from tests.daemon.operations.toy import Count, wanted
from tests.test_ratchet import ROOT, trees

PRODUCT = (
    "settings", "offsets", "changes", "actors", "databases", "sources", "sparkwriter", "collector",
    "daemon",
)  # fmt: skip

THREADS = {
    "daemon/admin/events/delivery.py": "each delivery is guarded",
    "daemon/operations/load/prefetch.py": "a future takes what is raised",
    "daemon/operations/engine/runner.py": "each request and event is guarded; its end is named",
    "daemon/operations/engine/thread.py": "a job's fault is its end",
    "sources/kafka/topic_store_tail.py": "each poll is guarded",
    "daemon/state/control.py": "each connection is guarded",
    "daemon/admin/web.py": "each connection and each answer is guarded",
    "daemon/operations/engine/desk.py": "a fault of an operation is its answer",
    "daemon/app/edits.py": "an event reports what is raised",
    "daemon/app/signals.py": "each reload is guarded",
    "actors/runtime/leash.py": "in a process of its own, which kills what it holds",
    "actors/runtime/aside.py": "raised where it is awaited",
    "actors/runtime/periodic.py": "each round is guarded",
    "sparkwriter/iceberg/adapter.py": "ends by itself at the end",
    "daemon/tracing/exporting.py": "ends by itself at the end",
    "sparkwriter/session/queries.py": "raised where it is awaited",
    "sparkwriter/session/jvm.py": "ends by itself at the end",
    "sparkwriter/session/keeper.py": "each start is guarded",
}
"""Where threads are made, and why they don't end without a word."""


def test_each_thread_has_a_guard() -> None:
    """Who makes another one says here how it is guarded; one that looks now and then is a
    ``Periodic``."""
    made = {
        str(file.relative_to(ROOT))
        for file, tree in trees(PRODUCT).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("threading.Thread", "Thread", "InheritableThread")
    }
    assert made == THREADS.keys()


class Rounds:
    """Counts rounds that all raise."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self._news = threading.Condition()

    def fail(self, name: str) -> Any:
        def act(*given: object, **named: object) -> None:
            with self._news:
                self.count[name] += 1
                self._news.notify_all()
            raise RuntimeError("a fault of \ud800")

        return act

    def all_reach(self, names: set[str], count: int) -> bool:
        with self._news:
            return self._news.wait_for(lambda: all(self.count[n] >= count for n in names), 60)


PERIODIC: dict[str, tuple[type, str, Any]] = {
    "monitor": (Monitor, "look", None),
    "events": (EventWatch, "look", watch),
    "minutes": (MinuteLog, "look", minutes),
    "history": (PageDesk, "sample", desk),
    "log-watch": (LogWatch, "look", log_watch),
    "verify-schedule": (VerifySchedule, "look", schedule),
    "automatic-loads": (AutomaticLoads, "look", unasked),
}
"""What they do in a round, and the module with the time between two."""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    return Flow(tmp_path, log, pipeline("p", "t", "*"))


def test_no_thread_of_a_daemon_ends_by_a_round(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round of each of them raises: all go on, and rows are written meanwhile."""
    rounds = Rounds()
    for name, (kind, method, module) in PERIODIC.items():
        monkeypatch.setattr(kind, method, rounds.fail(name))
        for constant in ("EVERY_S", "INTERVAL_S", "LOOK_EVERY_S"):
            if module is not None and hasattr(module, constant):
                monkeypatch.setattr(module, constant, 0.02)
    monkeypatch.setattr(Notifier, "listening", True)
    flow.config.write_text(
        flow.config.read_text()
        + '\n[events]\nfile = "events.jsonl"\n[metrics]\nlisten = "127.0.0.1:0"\n'
    )
    before = {thread.ident for thread in threading.enumerate()}
    flow.start()
    assert rounds.all_reach(set(PERIODIC), 3), rounds.count
    alive = {t.name for t in threading.enumerate() if t.ident not in before}
    assert alive >= {*PERIODIC, "control", "web", "jobs"}
    flow.insert("t", "a")
    flow.applied("a", 1)
    flow.stop()


def test_a_thread_that_dies_all_the_same_ends_the_daemon_by_name(
    flow: Flow, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service manager starts it again; a daemon with a part of it gone would not be missed."""
    flow.start()

    def die() -> None:
        raise RuntimeError("a fault")

    thread = threading.Thread(target=die, name="some-work")
    thread.start()
    thread.join()
    assert flow.ended() == [Exit.CRASHED]
    assert "thread some-work" in capsys.readouterr().out


def test_a_periodic_thread_ends_when_it_is_closed() -> None:
    """At once, also from within its round."""
    rounds = Rounds()
    periodic = Periodic("x", rounds.fail("x"), lambda: 3600.0, "test", "x_failed")
    periodic.start()
    assert rounds.all_reach({"x"}, 1)
    periodic.close(30)
    assert periodic.closed
    assert not any(thread.name == "x" for thread in threading.enumerate())


def test_the_signals_thread_survives_a_round(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What nobody foresaw of one look."""
    rounds = Rounds()
    monkeypatch.setattr("daemon.operations.signal_reader.EVERY_S", 0.02)
    monkeypatch.setattr(SignalReader, "look", rounds.fail("signals"))

    class Topic:
        topic = "signals"

    reader = SignalReader(Topic(), tmp_path, lambda *_: True)  # type: ignore[arg-type]
    reader.start()
    assert rounds.all_reach({"signals"}, 3)
    reader.close(30)


class BadStore(JobStore):
    """Can't store a job with that message, for a reason that nobody foresaw."""

    def save(self, job: Job) -> None:
        if job.wanted.params.get("bad") and job.state is not State.PLANNED:
            raise TypeError("no form for \ud800")
        super().save(job)


def test_one_job_that_can_not_be_recorded_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits; the others run to their ends."""
    monkeypatch.setattr("tests.daemon.operations.job_rig.JobStore", BadStore)
    kind: JobKind = Count()
    rig = JobRig(tmp_path, kind)
    rig.start()
    rig.runner.add(wanted(3, bad=True)).result(30)
    good = rig.runner.add(wanted(3)).result(30).id
    assert rig.ended(good).state is State.DONE
    rig.runner.stop(1)

"""A pause and a job of one target: one of them is refused, however close together they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest

from actors.runtime.files import write_durably
from daemon.operations.engine.here import InDaemon, Lent
from daemon.operations.engine.record import new_job
from daemon.operations.engine.store import JobStore
from daemon.operations.targets.pause import PauseOperation, PauseParams
from daemon.state.edits import EditRefused
from daemon.state.pauses import Pause, Pauses
from tests.daemon.operations.job_rig import JobRig
from tests.daemon.operations.toy import Count, wanted

T = TypeVar("T")

TARGET = "lake.s.t"
WITHIN_S = 30.0


class Held:
    """A call that waits until another call was made."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()

    def waits(self, function: Callable[..., T]) -> Callable[..., T]:
        """The call that waits."""

        def call(*args: Any, **kwargs: Any) -> T:
            self.begun.set()
            assert self.release.wait(WITHIN_S)
            return function(*args, **kwargs)

        return call

    def releases(self, function: Callable[..., T]) -> Callable[..., T]:
        """The call that it waits for."""

        def call(*args: Any, **kwargs: Any) -> T:
            self.release.set()
            return function(*args, **kwargs)

        return call


@pytest.fixture
def rig(tmp_path: Path) -> JobRig:
    """Jobs that run, and wait behind their first step."""
    made = JobRig(tmp_path, Count(gate=lambda control: control.wait(WITHIN_S)))
    made.start()
    return made


def here(rig: JobRig) -> InDaemon:
    def status() -> Mapping[str, Any]:
        return {"pipelines": []}

    def edit(*args: Any) -> Future[None]:
        raise AssertionError("a pause edits nothing")

    lent = Lent(rig.daemon, edit, rig.runner, rig.daemon.pauses, status)
    return InDaemon(lent, lambda good, line: None, lambda seconds: False)


def pause(rig: JobRig) -> None:
    PauseOperation().step(PauseParams(name=TARGET), here(rig))


def test_a_job_of_a_paused_target_is_refused(rig: JobRig) -> None:
    """Its table would be written, though nothing is to be; resumed it may be requested again."""
    pause(rig)
    with pytest.raises(EditRefused, match=f"{TARGET}: a person has paused it: `binlogd resume"):
        rig.runner.add(wanted()).result(WITHIN_S)
    assert rig.runner.jobs == rig.files.load().jobs == ()
    rig.daemon.pauses.put(TARGET, None)
    assert rig.runner.add(wanted()).result(WITHIN_S).wanted.targets == (TARGET,)
    rig.runner.stop(WITHIN_S)


def test_a_pause_beside_a_job_that_is_being_recorded_is_refused(
    rig: JobRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job was not listed yet when the pause was planned."""
    held = Held()
    monkeypatch.setattr(JobStore, "save", held.waits(JobStore.save))
    monkeypatch.setattr(Pauses, "put", held.releases(Pauses.put))
    job = rig.runner.add(wanted())
    assert held.begun.wait(WITHIN_S)
    with pytest.raises(EditRefused, match=f"{TARGET}: the job count-.* works on it"):
        pause(rig)
    assert job.result(WITHIN_S).wanted.targets == (TARGET,)
    assert rig.daemon.pauses.now() == {}
    rig.runner.stop(WITHIN_S)


def test_a_job_beside_a_pause_that_is_being_recorded_is_refused(
    rig: JobRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause was not recorded yet when the job was planned."""
    held = Held()
    monkeypatch.setattr("daemon.state.pauses.write_durably", held.waits(write_durably))
    monkeypatch.setattr("daemon.operations.engine.runner.new_job", held.releases(new_job))
    pausing = threading.Thread(target=pause, args=(rig,))
    pausing.start()
    assert held.begun.wait(WITHIN_S)
    with pytest.raises(EditRefused, match="a person has paused it"):
        rig.runner.add(wanted()).result(WITHIN_S)
    pausing.join(WITHIN_S)
    assert isinstance(rig.daemon.pauses.now()[TARGET], Pause)
    rig.runner.stop(WITHIN_S)

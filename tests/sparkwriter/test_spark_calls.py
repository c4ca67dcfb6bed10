"""Calls of jobs into the one session: of the JVM that lives, and told where it has gone."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from changes.model.errors import SinkUnavailable, TargetRefused
from daemon.config.file import load
from sparkwriter.session.keeper import SessionKeeper, SessionKeeperSettings
from sparkwriter.sinks import ConfiguredSinks, NoSpark
from sparkwriter.spark_sessions import SparkSessions
from tests.daemon.state.test_offset_transfer import World


class FakeJvm:
    """Lives until it is killed."""

    pid = 1

    def __init__(self) -> None:
        self._ended = threading.Event()

    def wait(self) -> str:
        self._ended.wait(60)
        return "was ended by the test"

    def kill(self) -> None:
        self._ended.set()

    def forget(self) -> None:
        """Nothing stands in the way."""

    def stop(self, within_s: float) -> None:
        self._ended.set()


class Sessions:
    """Sessions over JVMs of a few lines."""

    def __init__(self, folder: Path) -> None:
        World(folder)
        self.jvms: list[FakeJvm] = []
        self.sessions = SparkSessions(load(folder / "config.toml"))
        keeper: SessionKeeper[Any] = SessionKeeper(self.make, SessionKeeperSettings(0.01, 0.01))
        keeper.open()
        self.sessions._keeper = keeper

    def make(self) -> FakeJvm:
        self.jvms.append(FakeJvm())
        return self.jvms[-1]


def test_a_call_gets_the_session_that_lives(tmp_path: Path) -> None:
    """And after a death the next one."""
    world = Sessions(tmp_path)
    assert world.sessions.call(lambda jvm: jvm) is world.jvms[0]  # type: ignore[comparison-overlap]

    def dies(jvm: Any) -> None:
        jvm.kill()
        raise ConnectionError("broken pipe")

    with pytest.raises(SinkUnavailable, match="the JVM has ended"):
        world.sessions.call(dies)
    assert world.sessions.call(lambda jvm: jvm) is world.jvms[1]  # type: ignore[comparison-overlap]
    world.sessions.stop()


def test_what_a_call_raises_is_its_own_while_the_jvm_lives(tmp_path: Path) -> None:
    """A refusal is no death."""
    world = Sessions(tmp_path)

    def refuses(jvm: Any) -> None:
        raise TargetRefused("no")

    with pytest.raises(TargetRefused, match="no"):
        world.sessions.call(refuses)
    world.sessions.stop()


def test_without_spark_it_is_refused() -> None:
    """A job that needs it fails by name, instead of waiting for ever."""
    with pytest.raises(NoSpark, match="no sink of the configuration is written with Spark"):
        ConfiguredSinks().with_spark(lambda jvm: jvm)

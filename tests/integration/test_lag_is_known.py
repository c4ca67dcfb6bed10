"""Lag is the log's end as it is now, or unknown: never an older figure, never 0 by default."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.admin.logs import set_up_logs
from daemon.config.file import load
from daemon.state import control
from demo.broker import DevBroker
from settings.exit import Exit
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Gated, Member

pytestmark = pytest.mark.long

STEP = 4_000
"""Messages of 5 kB, sent at a time. How many a write, a staged file, the smallest memory and the
client's last answer hold together differs from run to run, so more come until reading pauses."""


def pause(rig: Rig) -> int:
    """Fill it up until reading pauses; gives how many messages that took."""
    for sent in range(0, 25 * STEP, STEP):
        rig.produce(*rows(rig, sent, STEP))
        try:
            until(rig, lambda p: p["paused"] and p["held"], seconds=10.0)
        except AssertionError:
            continue
        return sent + STEP
    raise AssertionError("all was taken")


def until(rig: Rig, wanted: Callable[[Any], bool], seconds: float = 100.0) -> Any:
    """The first status in which that is so, of the only pipeline and whether it is ready."""
    end, status = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            status = control.ask(rig.folder / "state", {"ask": "status"})
        except control.ControlError:  # it starts
            threading.Event().wait(0.1)
            continue
        if wanted({**status["pipelines"][0], "ready": status["ready"]}):
            return status
        threading.Event().wait(0.1)
    raise AssertionError(status)


def rows(rig: Rig, first: int, count: int) -> list[bytes]:
    dice = random.Random(first)
    return [
        canal(f"{rig.db}.t", "INSERT", [{"id": n, "name": dice.randbytes(2_500).hex(), "qty": n}])
        for n in range(first, first + count)
    ]


@pytest.mark.timeout(900)
def test_lag_grows_while_reading_pauses_and_is_unknown_without_a_broker(
    tmp_path: Path, lake_conf: Mapping[str, str], request: pytest.FixtureRequest
) -> None:
    """A paused consumer hears nothing of the log's end, one without a broker neither."""
    with DevBroker(tmp_path / "broker") as broker:
        rig = Rig(broker, functools.partial(request.getfixturevalue, "spark"), lake_conf, tmp_path)
        config = rig.write_config()
        small = "[memory]\nbudget_bytes = 16777216\nstaged_bytes = 1048576\n"
        config.write_text(config.read_text() + small)
        set_up_logs(load(config).log)
        tier = Gated(rig)
        member = Member(rig, config, tier)
        try:
            until(rig, lambda p: p["stage"] == "running")
            end = pause(rig)
            rig.produce(*rows(rig, end, STEP))
            end += STEP
            held = until(rig, lambda p: p["partitions"][0]["log_end"] == end)
            (pipeline,) = held["pipelines"]
            frontier = pipeline["partitions"][0]["frontier"]
            assert pipeline["lag_messages"] == end - frontier
            assert held["ready"]
            broker.stop()
            away = until(rig, lambda p: p["lag_messages"] is None)
            (pipeline,) = away["pipelines"]
            assert not away["ready"]
            assert pipeline["log_ends_unknown_seconds"] > 0
            assert pipeline["partitions"][0]["log_end"] is None
            assert pipeline["targets"][0]["lag_messages"] is None
            # What was read and is not applied is as old as before.
            assert pipeline["lag_seconds"] > 0
            broker.start()
            tier.gate.set()
            until(rig, lambda p: p["lag_messages"] == 0 and p["ready"])
        finally:
            tier.gate.set()
            assert member.stop() is Exit.OK

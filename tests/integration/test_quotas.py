"""Two pipelines in one daemon, one of them flooded: the other's rows are there within seconds."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, daemon

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]

FLOOD, TABLES = 400_000, 20
ROWS, EVERY_S = 50, 0.2
"""What comes for the calm pipeline while the other one is flooded: ten seconds."""

WITHIN_S = 3.0
"""How long after it was produced a calm row is in its table, at most, with quotas."""

QUOTAS = "quota = {memory = 0.3, writers = 1, messages_per_s = 8000}"


def configuration(rig: Rig, flooded: str) -> str:
    folder = rig.folder
    return f"""
        [daemon]
        state_dir = "{folder}/state"
        staging_dir = "{folder}/staging"
        writers = 2
        processors = 2
        [log]
        level = "debug"
        format = "json"
        file = "{rig.log_file}"
        [batch]
        max_age_s = 0.2
        [kafka]
        "bootstrap.servers" = "{rig.broker.bootstrap}"
        [sink.copy]
        kind = "sqlite"
        path = "copy.db"
        [pipeline.flooded]
        topics = ["{rig.topic}"]
        format = "canal-json"
        include = ["{rig.db}.flood*"]
        target = "copy.{{database}}.{{table}}"
        {flooded}
        [pipeline.calm]
        topics = ["{rig.topic}-calm"]
        format = "canal-json"
        include = ["{rig.db}.calm"]
        target = "copy.{{database}}.{{table}}"
    """


def flood(rig: Rig) -> None:
    """A backlog of many tables."""
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap, "linger.ms": 50})
    names = [f"{rig.db}.flood{number}" for number in range(TABLES)]
    for number in range(FLOOD):
        row = {"id": number, "name": "x" * 100, "qty": number}
        producer.produce(rig.topic, canal(names[number % TABLES], "INSERT", [row]), partition=0)
        if number % 50_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def trickle(rig: Rig) -> list[float]:
    """One row at a time; the moments at which they were produced, Unix time."""
    moments, pace = [], threading.Event()
    for number in range(ROWS):
        row = {"id": number, "name": "x", "qty": 1}
        moments.append(time.time())
        rig.produce(canal(f"{rig.db}.calm", "INSERT", [row]), topic=f"{rig.topic}-calm")
        pace.wait(max(0.0, moments[0] + (number + 1) * EVERY_S - time.time()))
    return moments


def seen(rig: Rig, moments: list[float]) -> list[float]:
    """By row, how long after it was produced the write with it had ended."""
    writes = [e for e in rig.events("written") if e["target"] == f"copy.{rig.db}.calm"]
    ends: list[float] = []
    for event in writes:
        at = datetime.fromisoformat(event["timestamp"]).timestamp()
        ends += [at] * event["changes"]
    assert len(ends) == ROWS
    return [end - begin for begin, end in zip(moments, ends, strict=True)]


def measured(
    rig: Rig,
    flooded: str,
    fill: bool,
    more: str = "",
    beside: Callable[[], object] = lambda: None,
) -> tuple[list[float], dict[str, Any]]:
    """By row, how long it took; and the rows of the flood. ``more`` of the configuration;
    ``beside`` is called when it has begun."""
    rig.create_topic(f"{rig.topic}-calm")
    if fill:
        flood(rig)
    path = rig.folder / "config.toml"
    path.write_text(configuration(rig, flooded) + more)
    follower = Follower(rig.log_file)
    process = daemon("run", "--config", str(path))
    try:
        # The flood is being written, or, without one, both pipelines read.
        follower.wait_for("written" if fill else "running")
        beside()
        moments = trickle(rig)
        count = 0
        while count < ROWS:
            follower.wait_for("written")
            written = [e for e in rig.events("written") if e["target"] == f"copy.{rig.db}.calm"]
            count = sum(event["changes"] for event in written)
        others = [e for e in rig.events("written") if "flood" in e["target"]]
        figures = {"flood_rows": sum(event["changes"] for event in others)}
        return seen(rig, moments), figures
    finally:
        follower.close()
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("flooded", "fill"),
    [("", False), ("", True), (QUOTAS, True)],
    ids=["alone", "flooded", "flooded-with-quotas"],
)
def test_a_calm_pipeline_beside_a_flooded_one(rig: Rig, flooded: str, fill: bool) -> None:
    """Without quotas fairness alone helps it; with them it has its bound."""
    waits, figures = measured(rig, flooded, fill)
    shown = statistics.quantiles(waits, n=20)
    print(f"p50 {shown[9]:.2f} s, p95 {shown[18]:.2f} s, max {max(waits):.2f} s; {figures}")
    if flooded:
        assert 0 < figures["flood_rows"] < FLOOD  # it went on all the time, and was never done
        assert max(waits) < WITHIN_S

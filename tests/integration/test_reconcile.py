"""``make reconcile``: counts of source, log and target amid kills; what is missing is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from offsets.counts import RowCounts
from tests.integration.reconcile import TABLES, Source, found_in, write
from tests.integration.rig import Rig
from tests.integration.test_process import Follower, daemon, ended, follower

__all__ = ["follower"]

ROWS, KILLS = int(os.environ.get("ROWS", "10000000")), int(os.environ.get("KILLS", "50"))
MINUTES = 60


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_source_log_and_target_agree_or_the_minute_is_named(
    rig: Rig, follower: Follower, capsys: pytest.CaptureFixture[str]
) -> None:
    """An hour of the source without a fault; then an hour that lacks one message."""
    source, begun = (
        Source(rig.db, (int(time.time()) // 60 - 3 * MINUTES) * 60_000),
        time.monotonic(),
    )
    step_ms = MINUTES * 60_000 / (ROWS / 20)
    whole, lossy = filled(rig, source, step_ms)
    config = killed(rig, follower, whole[0])
    status, document, took = counts(config, *whole)
    assert status == 0, [each["why"] for each in document["tables"].values()]
    made = {
        key: RowCounts(*(counted[letter] for letter in "IUD"))
        for key, counted in source.made.items()
        if key[1] in range(*whole)
    }
    assert found_in(document, rig.db) == made
    held = {name: each["target"]["held"] for name, each in document["tables"].items()}
    assert held == {
        f"lake.{rig.db}.{table}": sum(n.total for (name, _), n in made.items() if name == table)
        for table in TABLES
    }
    status, document, _ = counts(config, whole[1], minute_of(source.now_ms) - 20)
    (lost,) = document["transactions"]
    assert (status, lost["expected"], lost["found"]) == (1, 10, 9)
    assert lost["minute"] == made_half_way(lossy, step_ms)
    with capsys.disabled():
        print(
            f"\n{sum(n.total for n in made.values()):,} changes, {len(made):,} minutes of tables, "
            f"{KILLS} kills: equal; one lost message named; counts took {took:.0f} s of "
            f"{time.monotonic() - begun:.0f} s"
        )


def filled(rig: Rig, source: Source, step_ms: float) -> tuple[tuple[int, int], int]:
    """The minutes of the hour that is whole, and when the one begins that lacks a message."""
    begins_ms, many = source.now_ms, ROWS // 10
    write(rig.broker.bootstrap, rig.topic, source.transactions(ROWS, step_ms))
    lossy = source.now_ms
    more = source.transactions(many, step_ms * 10, lost=many // 2)
    write(rig.broker.bootstrap, rig.topic, more)
    # What is behind the ranges: it proves that they are over.
    source.now_ms += 30 * 60_000
    write(rig.broker.bootstrap, rig.topic, source.transactions(20, 1))
    return (minute_of(begins_ms), minute_of(lossy)), lossy


def killed(rig: Rig, follower: Follower, first_minute: int) -> str:
    """Daemons that are killed, one that reads to the end, and one that folds what is left."""
    config = rig.write_config(p=rig.pipeline(
        format="debezium-json", keys=["id"], counts=f"lake.{rig.db}.counts"
    ))  # fmt: skip
    for _ in range(KILLS):
        process = daemon("run", "--config", str(config), start_new_session=True)
        follower.wait_for("running")
        follower.wait_for("written", times=4, within_s=600)
        process.kill()
        ended(process)
    assert ended(daemon("run", "--config", str(config), "--until-caught-up"), 3600)[0] == 0
    process = daemon("run", "--config", str(config))
    until_told(str(config), process, first_minute)
    process.send_signal(signal.SIGTERM)
    assert ended(process, 300)[0] == 0
    return str(config)


def minute_of(time_ms: int) -> int:
    return time_ms // 60_000


def made_half_way(begins_ms: int, step_ms: float) -> int:
    """The minute of the row that was not written."""
    return minute_of(int(begins_ms + (ROWS // 10 // 2 // 20 + 1) * step_ms * 10))


def counts(config: str, begin: int, end: int) -> tuple[int, Any, float]:
    """Its status, its document, and how long it took."""
    span = [
        word
        for name, minute in (("--from", begin), ("--to", end))
        for word in (name, datetime.fromtimestamp(minute * 60, UTC).isoformat())
    ]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "daemon.cli", "counts", *span, "--json", "--config", config],
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), time.monotonic() - begun


def until_told(config: str, process: subprocess.Popen[str], begin: int) -> None:
    """Until the table of counts has what the daemons' marks carried: a minute at most."""
    deadline, pause = time.monotonic() + 300, Event()
    while counts(config, begin, begin + 1)[0] == 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        pause.wait(2)

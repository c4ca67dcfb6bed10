"""The faults, one at a time: each brings a daemon under load into trouble and lets it recover."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from daemon.state.offset_file import OffsetFile
from tests.chaos.lab import PATIENCE_S, SECTION, Lab, Outcome, lab
from tests.chaos.patient import Cut
from tests.chaos.rolled_back import rolled_back
from tests.integration.rig import Rig

STEPS: dict[str, Cut] = {
    "kill -9 after stage": ("after-stage", 9),
    "kill -9 in the middle of a write": ("in-merge", 5),
    "kill -9 after the commit, before Written": ("after-commit", 5),
    "kill -9 in a compaction": ("in-compaction", 2),
    "kill -9 in the transaction": ("in-transaction", 9),
    "kill -9 between file and Kafka": ("between-file-and-kafka", 4),
    "kill -9 during the start": ("during-start", 1),
}


def cut(rig: Rig, fault: str, *cuts: Cut) -> Outcome:
    """The daemon kills itself at a named step and is started again, as often as there are cuts."""
    with lab(rig, fault, cuts) as made:
        died = made.wait_for_death(len(cuts))
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - died)


def kill_jvm(made: Lab) -> float:
    """The JVM child is killed in mid-stream; how long it took to the next write."""
    os.kill(made.patient.jvm(), signal.SIGKILL)
    killed = time.monotonic()
    made.wait_for("session_rebuilt")
    return made.wait_for("written") - killed


def jvm_killed(rig: Rig) -> Outcome:
    """The JVM child is killed in mid-stream."""
    with lab(rig, "kill -9 of the JVM") as made:
        made.wait_for("written", 3)
        took = kill_jvm(made)
        made.settle()
        return made.outcome(took)


def broker_killed(rig: Rig) -> Outcome:
    """The broker goes as by a power cut and comes back."""
    return _broker_away(rig, "broker killed and started", rig.broker.kill)


def broker_stopped(rig: Rig) -> Outcome:
    """The broker is stopped in good order and comes back."""
    return _broker_away(rig, "broker stopped and started", rig.broker.stop)


def _broker_away(rig: Rig, fault: str, go: Callable[[], None]) -> Outcome:
    with lab(rig, fault) as made:
        made.wait_for("written", 3)
        go()
        threading.Event().wait(3)  # some retries of the clients
        rig.broker.start()
        back = time.monotonic()
        recovered = made.wait_for("written", 2)
        made.settle()
        return made.outcome(recovered - back)


def stopped_past_the_poll_interval(rig: Rig) -> Outcome:
    """SIGSTOP for longer than the group waits: the member is thrown out and comes back."""
    rig.kafka.update({"max.poll.interval.ms": 6000, "session.timeout.ms": 6000})
    with lab(rig, "SIGSTOP past max.poll.interval.ms") as made:
        made.wait_for("written", 3)
        made.patient.signal(signal.SIGSTOP)
        threading.Event().wait(9)
        made.patient.signal(signal.SIGCONT)
        woken = time.monotonic()
        recovered = made.wait_for("written", 2)
        made.settle()
        return made.outcome(recovered - woken)


def disk_full(rig: Rig) -> Outcome:
    """The state directory takes nothing for a while: offsets, dead letters and spills wait.

    A small file system of its own; where mounting is refused, the process's limit of file sizes.
    """
    fault = "state directory full"
    with small_disk(rig.folder / "one" / "state") as disk:
        if disk is None:
            return _files_refused(rig, fault)
        with lab(rig, fault) as made:
            made.wait_for("written", 3)
            fill(disk)
            made.wait_for("offsets_not_stored", 10)
            (disk / "ballast").unlink()
            empty = time.monotonic()
            recovered = made.wait_for("written")
            made.settle()
            return made.outcome(recovered - empty)


def _files_refused(rig: Rig, fault: str) -> Outcome:
    with lab(rig, fault, [("disk-full", 3)]) as made:
        made.wait_for("offsets_not_stored", 16)
        began = time.monotonic()
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - began)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of 1 MiB at ``folder``, None where this user may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        # What is compared afterwards is read before; a daemon that still holds it is on its way.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Take all the room that is left."""
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        size = 65536
        while size:
            try:
                ballast.write(bytes(size))
            except OSError:
                size //= 2


def damaged_offset_file(rig: Rig) -> Outcome:
    """kill -9, and the offset file is cut short before the restart."""
    with lab(rig, "kill -9, offset file corrupted") as made:
        made.wait_for("written", 4)
        made.patient.hold()
        made.patient.kill()
        died = made.wait_for_death()
        path = OffsetFile(made.state_dir, "p").path
        path.write_bytes(path.read_bytes()[:-30])
        made.patient.resume()
        recovered = made.wait_for("written")
        made.settle()
        assert made.count("offset_file_damaged") >= 1
        return made.outcome(recovered - died)


def in_rebalance(rig: Rig) -> Outcome:
    """A member is killed while partitions are being given to it and taken from another."""
    rig.kafka["session.timeout.ms"] = 6000
    with lab(rig, "kill -9 in a rebalance", partitions=2) as made:
        made.wait_for("written", 3)
        second = made.member("two", [("in-rebalance", 1)])
        died = second.wait_for_death(1, PATIENCE_S)
        recovered = made.wait_for("written", member="two")
        made.settle()
        return made.outcome(recovered - died)


SHARED = {"target": "lake.{database}.changes", "mode": "append", "tables": ["*.t0", "*.t1"]}
"""A target that two partitions feed, so both members write it. Its tables have no DDL."""


def second_daemon(rig: Rig) -> Outcome:
    """Another member joins, takes a partition over, and leaves again."""
    rig.kafka["session.timeout.ms"] = 6000
    section = {**SECTION, "route": [*SECTION["route"], SHARED]}
    shared = {"changes": ["t0", "t1"]}
    fault = "a second daemon joins and leaves"
    with lab(rig, fault, section=section, shared=shared, partitions=2) as made:
        made.wait_for("written", 3)
        made.member("two")
        made.wait_for("written", 5, member="two")
        made.wait_for("written", 3)
        before, left = made.count("assigned"), time.monotonic()
        made.leave("two")
        recovered = made.reach("assigned", before + 1)
        made.settle()
        return made.outcome(recovered - left)


def _cutter(fault: str) -> Callable[[Rig], Outcome]:
    return lambda rig: cut(rig, fault, STEPS[fault])


OF_DATABASES = ("kill -9 in the transaction",)
"""Of those that follow, what a lake does not have."""

FAULTS: dict[str, Callable[[Rig], Outcome]] = {
    **{fault: _cutter(fault) for fault in STEPS},
    "kill -9 in a rebalance": in_rebalance,
    "kill -9 of the JVM": jvm_killed,
    "broker stopped and started": broker_stopped,
    "broker killed and started": broker_killed,
    "SIGSTOP past max.poll.interval.ms": stopped_past_the_poll_interval,
    "state directory full": disk_full,
    "kill -9, offset file corrupted": damaged_offset_file,
    "a second daemon joins and leaves": second_daemon,
    "a table rolled back, reset": partial(rolled_back, way="reset"),
    "a table rolled back, rebuild": partial(rolled_back, way="rebuild"),
}


def several_in_turn(rig: Rig) -> Outcome:
    """What ``make test`` has time for: three cuts and the JVM, one after another in one stream."""
    rig.kafka["session.timeout.ms"] = 6000
    names = [fault for fault in STEPS if "write" in fault or "commit" in fault or "file" in fault]
    cuts = [STEPS[name] for name in names]
    with lab(rig, " + ".join(names), cuts) as made:
        for number in range(1, len(names) + 1):
            made.wait_for_death(number)
        made.wait_for("written", 2)
        took = kill_jvm(made)
        made.settle()
        return made.outcome(took)

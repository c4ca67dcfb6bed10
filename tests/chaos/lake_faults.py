"""Faults of a lake of servers: each goes on for a while, and then all is as it should be."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.lab import Lab, Outcome, lab
from tests.chaos.lakes import LakeRig
from tests.lake.faults.catalogue import kind_of
from tests.lake.proxy import Asked, Break, Fault, Rule, Status

REFUSALS = 3
"""So often a write is to fail before the fault ends."""


def s3_error(code: str) -> str:
    """An answer of an object store."""
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'


@contextmanager
def _lab(rig: LakeRig, fault: str) -> Iterator[Lab]:
    with lab(rig, fault) as made:
        made.wait_for("written", 5)
        yield made


def _for_a_while(rig: LakeRig) -> None:
    threading.Event().wait(rig.place.away_s)  # it is how long the fault lasts


def _ends(made: Lab, ended: float) -> Outcome:
    recovered = made.wait_for("written", 4)
    made.settle()
    return made.outcome(max(0.0, recovered - ended))


def broken(rig: LakeRig, fault: str, key: str, rule: Rule) -> Outcome:
    """Requests to a server break for a while; writes fail, and none is given up."""
    with _lab(rig, fault) as made:
        with rig.place.proxies[key].breaking(rule):
            failed = made.count("sink_unavailable") + REFUSALS
            _for_a_while(rig)
            made.reach("sink_unavailable", failed)
        return _ends(made, time.monotonic())


def commits_unknown(rig: LakeRig, fault: str) -> Outcome:
    """Every other commit is done, and its answer lost, or that of a gateway that tried it twice."""
    conflict = {"message": "again", "type": "CommitFailedException", "code": 409}
    answers: list[Fault | None] = [
        Break.ANSWER_LOST, None, Status(409, json.dumps({"error": conflict}), after=True), None,
        Status(504, after=True), None, Break.BEFORE, None,
    ]  # fmt: skip
    lock, number = threading.Lock(), [0]

    def rule(asked: Asked) -> Fault | None:
        if kind_of(asked) != "table: commit":
            return None
        with lock:
            number[0] += 1
            return answers[number[0] % len(answers)]

    with _lab(rig, fault) as made:
        with rig.place.proxies["uri"].breaking(rule) as found:
            _for_a_while(rig)
            made.wait_for("written", 8)
        assert len(found) > len(answers), found
        return _ends(made, time.monotonic())


def keys_expired(rig: LakeRig, fault: str) -> Outcome:
    """The store takes the old key no more; some time later the new one is in the file."""
    expired = "s3.access-key-id-number-1"

    def rule(asked: Asked) -> Fault | None:
        signed = any(expired in value for name, value in asked.headers if name == "Authorization")
        return Status(403, s3_error("InvalidAccessKeyId")) if signed else None

    rig.place.rotate(1)
    with _lab(rig, fault) as made, rig.place.proxies["s3.endpoint"].breaking(rule):
        made.wait_for("sink_unavailable", REFUSALS)
        rig.place.rotate(2)
        rotated = time.monotonic()
        recovered = made.wait_for("written", 4)
        made.settle()
        return made.outcome(recovered - rotated)


def server_killed(rig: LakeRig, fault: str, which: str) -> Outcome:
    """A server goes as by a power cut, stays away, and comes back with its data."""
    server: Any = rig.place.lake.servers[which]
    with _lab(rig, fault) as made:
        server.kill()
        _for_a_while(rig)
        server.start()
        return _ends(made, time.monotonic())


def server_stopped(rig: LakeRig, fault: str, which: str) -> Outcome:
    """A server answers nothing for a while (SIGSTOP), and then goes on."""
    server: Any = rig.place.lake.servers[which]
    with _lab(rig, fault) as made:
        signal_to(server.program.pid, signal.SIGSTOP)
        try:
            _for_a_while(rig)
        finally:
            signal_to(server.program.pid, signal.SIGCONT)
        return _ends(made, time.monotonic())


def signal_to(leash: int, number: int) -> None:
    """To the process that is on a leash."""
    for child in Path(f"/proc/{leash}/task/{leash}/children").read_text().split():
        os.kill(int(child), number)


def _all(fault: Fault) -> Rule:
    return lambda asked: fault


def _puts(fault: Fault) -> Rule:
    return lambda asked: fault if asked.method == "PUT" else None


Injected = Callable[[LakeRig], Outcome]
_STORE: dict[str, Rule] = {
    "object store away": _all(Break.BEFORE),
    "object store slow (SlowDown)": _all(Status(503, s3_error("SlowDown"))),
    "bucket without rights": _puts(Status(403, s3_error("AccessDenied"))),
    "clock skew": _all(Status(403, s3_error("RequestTimeTooSkewed"))),
}

LAKE_FAULTS: dict[str, dict[str, Injected]] = {
    "s3": {
        name: partial(function, fault=name, **more)
        for name, function, more in [
            *((n, broken, {"key": "s3.endpoint", "rule": rule}) for n, rule in _STORE.items()),
            ("catalog away", broken, {"key": "uri", "rule": _all(Break.BEFORE)}),
            ("catalog killed and started", server_killed, {"which": "catalog"}),
            ("commits of unknown outcome", commits_unknown, {}),
            ("expired keys", keys_expired, {}),
        ]
    },
    "hdfs": {
        name: partial(function, fault=name, which=which)
        for name, function, which in [
            ("name node stopped", server_stopped, "storage"),
            ("metastore stopped", server_stopped, "catalog"),
            ("metastore killed and started", server_killed, "catalog"),
        ]
    },
}
"""By what LAKE is; beside the faults that are those of any lake."""

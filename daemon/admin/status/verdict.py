"""What ``/healthz`` and ``/readyz`` say of a status document. Pure."""

from __future__ import annotations

from typing import Any


def verdict(path: str, status: Any) -> tuple[bool, list[str]]:
    """Whether all is well, and lines about what is not."""
    if path == "/healthz":
        stuck = [
            f"{silent['actor']} has not answered for {silent['seconds']:.0f} s"
            for silent in status["silent"]
            if silent["stuck"]
        ]
        return not stuck, stuck or ["ok"]
    if status["ready"]:
        return True, ["ok"]
    waiting = [
        f"pipeline {p['pipeline']}: {p['failure'] or p['stage']}"
        + ("" if p["assigned"] else ", no partitions assigned yet")
        for p in status["pipelines"]
        if p["stage"] != "running" or not p["assigned"]
    ]
    waiting += [
        f"pipeline {p['pipeline']}: the logs' ends are unknown for "
        f"{p['log_ends_unknown_seconds']:.0f} s: {p['log_ends_error']}"
        for p in status["pipelines"]
        if p["stage"] == "running" and p["assigned"] and p["log_ends_unknown_seconds"] is not None
    ]
    session = status["spark"]
    if session is not None and session["down_seconds"] is not None:
        down_s = session["down_seconds"]
        waiting.append(f"the JVM {session['last_end']} {down_s:.0f} s ago; it is started again")
    return False, [status["state"], *waiting]

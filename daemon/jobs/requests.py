"""What commands ask of the running daemon: have a job recorded, follow it to its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from daemon.config.config import Config
from daemon.jobs.record import Wanted
from daemon.observe import control
from daemon.runtime.lifecycle import Exit

LOOK_EVERY_S = 0.5

FINAL = ("cancelled", "failed", "done")


def added(settings: Config, wanted: Wanted) -> str:
    """Have a job recorded; its id. Raises ControlError, of it NotRunning."""
    request = {
        "ask": "jobs-add",
        "kind": wanted.kind,
        "pipeline": wanted.pipeline,
        "targets": list(wanted.targets),
        "params": dict(wanted.params),
    }
    return str(control.ask(settings.daemon.state_dir, request)["job"])


def followed(settings: Config, job: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Wait for a job's end; the job. ``tell`` gets each line that is new.

    Leaving the command leaves the job as it is. Raises ControlError.
    """
    said = ""
    while True:
        request = {"ask": "jobs-show", "job": job}
        found: dict[str, Any] | None = control.ask(settings.daemon.state_dir, request)
        if found is None:
            raise control.ControlError(f"job {job} is not listed any more: raise jobs.keep")
        line = f"{job}: {found['state']}, {found['progress']['done']:,} rows: {found['message']}"
        if line != said:
            said = line
            tell(line)
        if found["state"] in FINAL:
            return found
        time.sleep(LOOK_EVERY_S)


def failed(settings: Config, reason: str, status: Exit) -> int:
    """Say why on standard error, without secrets. Returns the exit status."""
    print(f"binlogd: {settings.redactor.text(reason)}", file=sys.stderr)
    return status.value

"""The daemon of the load's demo, and what is asked of it by its own commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import HOST
from demo.__main__ import DemoFailed
from demo.load.mariadb import PASSWORD, USER

_START_WITHIN_S = 110.0
_STOP_WITHIN_S = 90.0
FINAL = ("done", "failed", "cancelled")

CONFIG = """
[pipeline.shop]
database = "shop"
exclude = ["*.beat"]
on_refused_target = "reload"

[pipeline.shop.verify]
margin_s = 2.0

[load]
margin_s = 5.0

[database.shop]
url = "mysql://{host}:{port}/"
user = "{user}"
password = "{password}"
"""


def write_config(var: Path, port: int) -> Path:
    """The embedded default, and what a load needs."""
    text = (CHECKOUT / "demo" / "config.toml").read_text(encoding="utf-8")
    more = CONFIG.format(host=HOST, port=port, user=USER, password=PASSWORD)
    head = "[pipeline.shop]\n"
    more = more.removeprefix("\n").removeprefix(head)
    pipeline, rest = more.split("\n\n", 1)
    assert text.count(head) == 1
    text = text.replace(head, head + pipeline + "\n") + "\n" + rest
    path = var / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


class Daemon:
    """One daemon's lives. Ended when the block is."""

    def __init__(self, var: Path, config: Path, bootstrap: str) -> None:
        self._var = var
        self._config = str(config)
        self._process: subprocess.Popen[bytes] | None = None
        self._bootstrap = bootstrap

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def start(self) -> None:
        """Start it, and wait until it can be asked. Raises DemoFailed."""
        log = (self._var / "daemon.out").open("ab")
        with log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "daemon.cli", "run", "--config", self._config],
                cwd=CHECKOUT, env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + _START_WITHIN_S
        while not self._runs():
            if self._process.poll() is not None or time.monotonic() > end:
                raise DemoFailed(f"the daemon does not start: see {self._var}/daemon.out")
            threading.Event().wait(0.5)

    def _runs(self) -> bool:
        status = self.asked("status", "--json", check=False)
        return isinstance(status, dict) and bool(status.get("ready"))

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9, and what it started ends with it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def begin_load(self, tables: Sequence[str]) -> str:
        """Begin a load; return its job."""
        self.asked("tables", "load", *tables)
        (job,) = [job["job"] for job in self._jobs() if job["kind"] == "load"]
        return str(job)

    def await_rows(self, job: str, rows: int) -> None:
        """Return once so many rows are there."""
        while (found := self.job(job))["progress"]["done"] < rows:
            self._wait(found)

    def await_job(self, job: str) -> None:
        """Return when it is done. Raises DemoFailed."""
        while (found := self.job(job))["state"] not in FINAL:
            self._wait(found)
        if found["state"] != "done":
            raise DemoFailed(f"job {job} has {found['state']}: {found['message']}")

    def reloaded(self, target: str) -> None:
        """Wait until a target that was refused is loaded again, by itself."""
        while True:
            jobs = [job for job in self._jobs() if job["origin"] == "reload"]
            if jobs and jobs[0]["targets"] == [target]:
                self.await_job(jobs[0]["job"])
                return
            threading.Event().wait(0.5)

    def verified(self, *words: str) -> dict[str, Any]:
        """The result of a verification, equal or not."""
        found: Any = self.asked("tables", "verify", *words, "--json", check=False)
        if not found:
            raise DemoFailed("nothing was verified")
        result: dict[str, Any] = found[0]
        return result

    @property
    def _environ(self) -> Mapping[str, str]:
        return os.environ | {"BINLOGD_VAR": str(self._var), "BINLOGD_BROKER": self._bootstrap}

    def asked(self, *words: str, check: bool = True) -> Any:
        """A command's JSON, or None where it prints none. Raises DemoFailed where it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "daemon.cli", *words, "--config", self._config],
            cwd=CHECKOUT, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise DemoFailed(f"binlogd {' '.join(words)}: {done.stderr or done.stdout}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def _jobs(self) -> list[dict[str, Any]]:
        return list(self.asked("jobs", "list", "--json") or [])

    def job(self, job: str) -> dict[str, Any]:
        """What ``jobs show`` says."""
        found: dict[str, Any] = self.asked("jobs", "show", job, "--json")
        return found

    def _wait(self, job: Mapping[str, Any]) -> None:
        if job["state"] in ("failed", "cancelled"):
            raise DemoFailed(f"job {job['job']} has {job['state']}: {job['message']}")
        threading.Event().wait(0.5)

"""A machine of its own for a package: systemd as PID 1 in namespaces, on a copy of our files.

The network is this machine's, so a broker on loopback is in reach. Nothing that is written there
outlives it. Needs root.
"""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

BOOT = Path(__file__).with_name("boot.sh")
_BOOT_WITHIN_S = 60.0


class Machine:
    """Booted when entered, gone when left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._init = ""

    def __enter__(self) -> Machine:
        self._log = (self._folder / "boot.log").open("w")
        place = self._folder / "machine"
        place.mkdir()
        self._unshare = subprocess.Popen(
            ["unshare", "--fork", "--pid", "--mount", "--uts", "--ipc", "--cgroup",
             "--kill-child", str(BOOT), str(place)],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        end = time.monotonic() + _BOOT_WITHIN_S
        while not self._is_up(children):
            assert self._unshare.poll() is None, (self._folder / "boot.log").read_text()
            assert time.monotonic() < end, "systemd does not come up"
            threading.Event().wait(0.2)
        return self

    def _is_up(self, children: Path) -> bool:
        self._init = children.read_text().strip()
        if not self._init:
            return False
        return self.run("systemctl", "is-system-running", check=False).strip() == "running"

    def __exit__(self, *_: object) -> None:
        self._unshare.kill()  # and with it, by --kill-child, PID 1 and all of the namespace
        self._unshare.wait()
        self._log.close()

    def run(self, *command: str, check: bool = True, within_s: float = 240) -> str:
        """Run a command there; what it says on both outputs."""
        ran = subprocess.run(
            ["nsenter", "-t", self._init, "-a", "-r", "-w", "env", "DEBIAN_FRONTEND=noninteractive",
             "LC_ALL=C.UTF-8", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=within_s,
        )  # fmt: skip
        assert not check or ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}"
        return ran.stdout

    def status_of(self, *command: str) -> int:
        """The exit status of a command there."""
        enter = ["nsenter", "-t", self._init, "-a", "-r", "-w"]
        return subprocess.run(
            [*enter, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=60,
        ).returncode  # fmt: skip

    def write(self, path: str, text: str) -> None:
        """Write a file there."""
        subprocess.run(
            ["nsenter", "-t", self._init, "-a", "-r", "-w", "tee", path],
            input=text, stdout=subprocess.DEVNULL, text=True, check=True, timeout=30,
        )  # fmt: skip

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).strip()

    def journal(self, unit: str) -> str:
        """All that a unit said."""
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit)

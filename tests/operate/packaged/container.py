"""A container without an engine: a root file system that nothing else sees, entered as one would.

Namespaces of its own, a user without any capability, the root read-only, ``/tmp`` and a folder for
state writable, the command process 1. The network is this machine's, so a broker on loopback is in
reach. Needs root.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

START = Path(__file__).with_name("container.sh")


class Container:
    """One command in an unpacked image. ``state`` is mounted at ``/var/lib/binlogd``."""

    def __init__(self, root: Path, state: Path, config: Path) -> None:
        self._places = (str(root), str(state), str(config))

    def command(self, *words: str) -> list[str]:
        """What starts it: the command becomes process 1."""
        return [
            "unshare", "--fork", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "--kill-child",
            str(START), *self._places, *words,
        ]  # fmt: skip

    def run(self, *words: str, within_s: float = 300) -> str:
        """Run a command to its end; what it says on both outputs."""
        ran = subprocess.run(
            self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=within_s,
        )  # fmt: skip
        assert ran.returncode == 0, f"{words}: {ran.returncode}\n{ran.stdout}"
        return ran.stdout

    def start(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        """Start one that runs on; its output goes to a file."""
        with log.open("wb") as out:
            return subprocess.Popen(
                self.command(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip


def terminate(started: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to process 1 of the container, as an engine does."""
    (first,) = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    os.kill(int(first), signal.SIGTERM)

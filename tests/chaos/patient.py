"""A daemon process that is brought up again whenever it ends by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
RESTARTS = 40
"""More, and it can't start: a fault takes one or two, the soak's first part twenty at most."""

Cut = tuple[str, int]
"""A step of ``tests.chaos.faulty`` and at which passing of it the process is cut off."""


class Patient:
    """Started at once; each of ``cuts`` is for one start, in order, and later starts are whole."""

    def __init__(self, config: Path, stderr: Path, cuts: Iterable[Cut] = ()) -> None:
        self._config = config
        self.stderr = stderr
        self._cuts = list(cuts)
        self._keep_up = True
        self._news = threading.Condition()
        self.restarts = -1
        self.deaths: list[float] = []
        """When it ended by itself, or was killed, by the monotonic clock."""
        self.statuses: list[int] = []
        self.process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> subprocess.Popen[bytes]:
        step, times = self._cuts.pop(0) if self._cuts else ("none", 1)
        self.restarts += 1
        with self.stderr.open("ab") as stderr:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.faulty", step, str(times),
                 "run", "--config", str(self._config)],
                cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
            )  # fmt: skip

    def _keep(self) -> None:
        while True:
            status = self.process.wait()
            with self._news:
                self.statuses.append(status)
                self.deaths.append(time.monotonic())
                again = self._keep_up and self.restarts < RESTARTS
                if again:
                    self.process = self._start()
                self._news.notify_all()
            if not again:
                return

    def wait_for_death(self, number: int, within_s: float) -> float:
        """Wait until it has ended so many times; when that was. Raises TimeoutError."""
        with self._news:
            if not self._news.wait_for(lambda: len(self.deaths) >= number, within_s):
                raise TimeoutError(f"it did not end within {within_s:.0f} s")
            return self.deaths[number - 1]

    def signal(self, number: int) -> None:
        """To the daemon alone."""
        with self._news:
            self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9; it is brought up again."""
        self.signal(signal.SIGKILL)

    def cut_next(self, cut: Cut) -> None:
        """The next start is cut off there."""
        with self._news:
            self._cuts.append(cut)

    def hold(self) -> None:
        """From now on it stays down when it ends."""
        with self._news:
            self._keep_up = False

    def resume(self) -> None:
        """Bring it up again after ``hold``; it has ended."""
        self._keeper.join()
        self._keep_up = True
        self.process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of ``binlogd`` with this configuration, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "daemon.cli", *arguments, "--config", str(self._config)],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def jvm(self) -> int:
        """The process id of its JVM. Raises LookupError while there is none."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                name, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            if name.endswith("(java") and int(rest.split()[1]) == self.process.pid:
                return int(entry.name)
        raise LookupError("the daemon has no JVM")

    def stop(self, within_s: float) -> int:
        """End it in good order; its exit status. Raises TimeoutError."""
        self.hold()
        self.signal(signal.SIGTERM)
        self._keeper.join(within_s)
        if self._keeper.is_alive():
            raise TimeoutError(f"it did not end within {within_s:.0f} s of SIGTERM")
        return self.statuses[-1]

    def close(self) -> None:
        """For the end of a run that failed."""
        self.hold()
        if self.process.poll() is None:
            self.process.kill()
        self._keeper.join(10)

    def said(self, lines: int = 1) -> str:
        """The last lines on standard error."""
        return "\n".join(self.stderr.read_text(errors="replace").splitlines()[-lines:])

"""binlogd on a live stream while it loads another table of the same pipeline.

The load begins a moment after it is asked for (``load.margin_s`` of a second, not a minute), and
ends with the stream where it has not ended before: ``loading_s`` is how long it read.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.compare.dying import die_with_parent
from bench.compare.job import NAMESPACE, Begin, End, read_job, tell
from bench.compare.sources import BESIDE
from bench.peers import binlogd
from bench.peers.binlogd_load import PIPELINE, SOURCE
from bench.peers.committed import await_committed
from bench.peers.tail import events
from daemon.config.file import load
from sparkwriter.session.jars import fetch_extra
from sparkwriter.session.java import CHECKOUT

_LOOK_EVERY_S = 0.5
_DRAIN_WITHIN_S = 120.0
_MARGIN = "[load]\nmargin_s = 1.0\n"


def main() -> None:
    """Run the daemon; ask for the load when the stream begins."""
    job = read_job()
    fetch_extra("mariadb")
    path = Path(job.folder) / "config.toml"
    path.write_text(binlogd.configured(job) + PIPELINE + SOURCE.format(**job.source) + _MARGIN)
    group = load(path).group("bench")
    daemon = subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", "--config", str(path)],
        cwd=CHECKOUT,
        preexec_fn=die_with_parent,
    )
    for event in events(Path(job.folder) / "binlogd.log", daemon):
        if event["event"] == "running":
            break
    tell(Begin(daemon.pid))
    load_ = _Load(path)
    await_committed(job, group, _LOOK_EVERY_S, lambda: _check(daemon, load_))
    tell(End(job.end, {"loading_s": round(load_.read_s(), 1), "load": load_.said}))
    load_.end()
    daemon.terminate()
    sys.exit(daemon.wait(_DRAIN_WITHIN_S))


class _Load:
    """The command, and what it says."""

    def __init__(self, config: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "daemon.cli", "tables", "load", f"{NAMESPACE}.{BESIDE}",
             "--wait", "--config", str(config)],
            cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
        )  # fmt: skip
        self.said = ""
        self._begun = self._last = 0.0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said = line.strip()
            if ": range " in line or "rows are read" in line:
                self._last = time.monotonic()
                self._begun = self._begun or self._last

    def read_s(self) -> float:
        """From the first range to the last."""
        return self._last - self._begun

    def end(self) -> None:
        """Leave it."""
        self.process.kill()
        self.process.wait()


def _check(daemon: subprocess.Popen[bytes], load_: _Load) -> None:
    if daemon.poll() is not None:
        raise SystemExit(f"the daemon ended with {daemon.returncode}")
    # Once its rows are there a load waits for news of an hour's length if it must.
    if load_.process.poll() not in (None, 0):
        raise SystemExit(f"the load has failed: {load_.said}")


if __name__ == "__main__":
    main()

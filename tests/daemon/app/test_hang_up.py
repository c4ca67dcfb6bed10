"""SIGHUP: signals of one moment, in a process of their own as they may end it."""

from __future__ import annotations

import subprocess
import sys

STORM = """
import faulthandler, os, queue, signal, subprocess, sys, threading
from daemon.app.signals import reloads_on_hang_up

faulthandler.dump_traceback_later(30, exit=True)
reloaded = threading.Semaphore(0)
with reloads_on_hang_up(reloaded.release):
    send = "import os, signal\\nfor _ in range(50_000): os.kill({}, signal.SIGHUP)"
    sender = subprocess.Popen([sys.executable, "-c", send.format(os.getpid())])
    over = queue.SimpleQueue()
    threading.Thread(target=lambda: over.put(sender.wait())).start()
    assert over.get() == 0
    while reloaded.acquire(timeout=1):  # those of the storm
        pass
    os.kill(os.getpid(), signal.SIGHUP)
    assert reloaded.acquire(timeout=10)
print("one more was heard")
"""


def test_many_signals_at_once_are_heard_and_so_is_the_next() -> None:
    """The handler interrupts itself: it may wait for nothing that it holds."""
    done = subprocess.run(
        [sys.executable, "-c", STORM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "one more was heard\n"), done.stderr

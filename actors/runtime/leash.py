"""Runs a command that ends when the process that started it does, however that one ends.

``python leash.py PARENT COMMAND...``, with a pipe as standard input: a byte there asks the command
to end (SIGTERM); the end of the pipe, or of the process PARENT, kills it. (A fork of the parent may
hold the pipe open for longer.) Were the leash itself killed, the kernel kills the command. A JVM
watches neither its parent nor its standard input, so without this a broker would outlive a daemon
or a test that was killed.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the command of argv; exits with its code, 128 + signal where a signal ended it."""
    libc = ctypes.CDLL(None)
    parent = os.pidfd_open(int(sys.argv[1]))
    if os.getppid() != int(sys.argv[1]):
        return 128 + signal.SIGKILL  # it has ended already, and the number may be another's

    def die_with_me() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    # In the main thread, which lasts: the kernel's watch is over the thread that started it.
    command = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, preexec_fn=die_with_me)

    def watch() -> None:
        ends = select.poll()
        ends.register(0, select.POLLIN)
        ends.register(parent, select.POLLIN)
        while all(end != parent for end, _ in ends.poll()) and os.read(0, 1):
            command.terminate()
        command.kill()

    threading.Thread(target=watch, daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())

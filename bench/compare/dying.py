"""Processes that end when the one that started them does, however that ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def die_with_parent() -> None:
    """For ``preexec_fn``, from a thread that lasts: the kernel watches the thread that starts it.

    A JVM that Spark launched ends by itself when its launcher's end of its standard input closes.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

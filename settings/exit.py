"""The life cycle of the process and its pipelines. Deterministic, so every ending has a test."""

from __future__ import annotations

from enum import Enum


class Exit(Enum):
    """The process's exit status."""

    OK = 0
    PIPELINE_FAILED = 1
    """A data error stopped a pipeline and no other runs any more."""
    UNUSABLE = 2
    """The configuration or the environment can't be used: nothing was started."""
    CRASHED = 70
    """An unexpected fault. systemd restarts the daemon; a replay is harmless."""
    DEADLINE = 75
    """The drain did not end in time. What was not written is read again at the next start."""
    NOT_RUNNING = 3
    """The status of ``binlogd status``: no daemon runs there."""
    ILL = 4
    """The status of ``binlogd status``: the daemon runs, and somebody has to act."""
    KILLED = 130
    """A second signal came."""

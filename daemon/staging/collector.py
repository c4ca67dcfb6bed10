"""Python's cycle collector, set for a process that handles small objects by the thousand."""

from __future__ import annotations

import gc

_TRACKED_BEFORE_COLLECTING = 100_000


def calm_collector() -> None:
    """Have it look for cycles seldom. Called once, by the main thread, when the imports are done.

    Each fetched batch makes thousands of tracked objects and no cycle; with the default of 700
    the collector took 15 % of the flow's time (measured). What is alive now stays: no need to look
    at it again.
    """
    gc.freeze()
    gc.set_threshold(_TRACKED_BEFORE_COLLECTING, 20, 100)

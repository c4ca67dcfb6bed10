"""Sets Python's cycle collector for a process that handles small objects by the thousand."""

from __future__ import annotations

import gc

_TRACKED_BEFORE_COLLECTING = 100_000


def calm_collector() -> None:
    """Collect cycles seldom. The main thread calls it once, after the imports.

    Each fetched batch makes thousands of tracked objects and no cycle. With the default threshold
    of 700 the collector took 15 % of the flow's time (measured). Objects that exist now are
    permanent and need no further look.
    """
    gc.freeze()
    gc.set_threshold(_TRACKED_BEFORE_COLLECTING, 20, 100)

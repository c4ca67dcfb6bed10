"""What the exchange of a rebuilt table has in common, whatever the sink."""

from __future__ import annotations

from actors.contract.writes import Swap


def nothing_rebuilt(swap: Swap) -> str:
    """Why there is nothing to exchange, and what leaves the old table as it is."""
    return (
        "nothing was written to its new table: the log holds no row of it. `binlogd tables "
        f"rebuild {swap.old} --cancel` leaves it as it is"
    )

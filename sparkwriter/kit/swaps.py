"""What the exchange of a rebuilt table has in common, whatever the sink."""

from __future__ import annotations

from collections.abc import Sequence

from actors.contract.writes import Swap

DROP_BY_HAND = "drop it by hand: nothing needs it"
"""What is to be done with a table that was replaced, and could not be removed."""


def hangs_on_it(hanging: Sequence[str]) -> str:
    """Why a table with these can't be replaced by another one, and what to do."""
    return (
        f"{', '.join(hanging)}: would go with the old table, or stay with it: remove it for the "
        "load or rebuild, and make it again afterwards"
    )


def nothing_rebuilt(swap: Swap) -> str:
    """Why there is nothing to exchange, and what leaves the old table as it is."""
    return (
        "nothing was written to its new table: the log holds no row of it. `binlogd tables "
        f"rebuild {swap.old} --cancel` leaves it as it is"
    )

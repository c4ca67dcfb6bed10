"""What a person has paused, for an operation wherever it is carried out."""

from __future__ import annotations

from daemon.operations.engine.here import Here, InDaemon
from daemon.state.edits import EditRefused
from daemon.state.pauses import Pauses, PausesUnreadable


def pauses_of(here: Here) -> Pauses:
    """While no daemon runs, nobody pauses anything meanwhile. Raises EditRefused: what is recorded
    can't be read."""
    if isinstance(here, InDaemon):
        return here.lent.pauses
    found = Pauses(here.config.daemon.state_dir)
    try:
        found.load()
    except (PausesUnreadable, OSError) as error:
        raise EditRefused(str(error)) from error
    return found

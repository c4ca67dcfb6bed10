"""Takes a new position for a connector whose own is gone: the source's present."""

from __future__ import annotations

import threading
import time

from collector.connect.rest import ConnectAway, ConnectRest
from collector.connector.config import slot_name
from collector.source_watch import SourceWatch
from collector.wiring import Wiring

_STOPPED_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.5


class NewPosition:
    """What is done can be repeated: each step looks at what is there."""

    def __init__(
        self, wiring: Wiring, rest: ConnectRest, source: SourceWatch, connector: str
    ) -> None:
        self._wiring, self._rest, self._source = wiring, rest, source
        self._connector = connector

    def take(self) -> None:
        """Stop the connector, forget its position, and its slot of PostgreSQL: the reader makes
        another. Raises ConnectError, DatabaseError."""
        rest, connector = self._rest, self._connector
        slots = [slot_name(self._wiring.name, self._wiring.section)]
        if (config := rest.config(connector)) is not None:
            slots.append(config.get("slot.name", ""))  # that of a former topic's name
            stop(rest, connector)
            if rest.offsets(connector) is not None:
                rest.remove_offsets(connector)
        for slot in dict.fromkeys(filter(None, slots)):
            self._source.drop_slot(slot)


def stop(rest: ConnectRest, connector: str) -> None:
    """Stop a connector, and wait until its task has ended. Raises ConnectError."""
    rest.stop(connector)
    deadline, pause = time.monotonic() + _STOPPED_WITHIN_S, threading.Event()
    while (state := rest.state(connector)).connector != "STOPPED" or state.task is not None:
        if time.monotonic() > deadline:
            raise ConnectAway(f"{connector} has not stopped: it is {state.connector}")
        pause.wait(_LOOK_EVERY_S)

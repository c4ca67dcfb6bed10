"""The tables that are being read again or loaded, by what is recorded of them. Pure."""

from __future__ import annotations

from changes.model import TargetName
from offsets.load import Load
from offsets.snapshot import Snapshot


def stand_ins(snapshot: Snapshot) -> dict[TargetName, TargetName]:
    """The targets under rebuild, each with the table that gets its changes."""
    return {
        TargetName.parse(target): TargetName.parse(rebuild.into)
        for target, rebuild in snapshot.rebuilds.items()
        if not rebuild.cancelled
    }


def loads_of(snapshot: Snapshot) -> dict[str, Load]:
    """The loads under way, by the name of the table that each fills."""
    return {
        rebuild.into: rebuild.load
        for rebuild in snapshot.rebuilds.values()
        if rebuild.load is not None and not rebuild.cancelled
    }

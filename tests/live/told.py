"""What the daemon has said by name, from its log: which tables may differ, and why. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from changes.model.model import TargetName
from tests.live.schema import Name

OF_A_TARGET = ("quarantined", "ddl_not_understood", "dead_letter")
"""Events that name a target which may differ from then on. ``rows_may_differ`` is none of them: its
mark counts, which goes with a table that is renamed, and goes away when it is filled again."""


@dataclass(slots=True)
class Told:
    """Of one pipeline: why it has stopped, if it has, and of tables why they may differ."""

    stopped: str = ""
    tables: dict[Name, str] = field(default_factory=dict)
    at_large: list[str] = field(default_factory=list)
    """Statements that were not understood, said before anybody knew a target."""

    def about(self, name: Name) -> str:
        """Why a table may differ; empty where nothing was said of it."""
        if self.stopped:
            return f"the pipeline has stopped: {self.stopped}"
        if name in self.tables:
            return self.tables[name]
        return next((what for what in self.at_large if name[1] in what), "")


def read(lines: Iterable[str], pipeline: str, marks: Mapping[str, str | None]) -> Told:
    """Read a log of the format json, in which a kill may have cut a line short. ``marks``: what is
    recorded of the targets as ``rows_may_differ``."""
    told = Told()
    for target, mark in marks.items():
        if mark is not None:
            told.tables[_table(target)] = f"rows_may_differ: {mark}"
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("pipeline") == pipeline:
            _note(told, event)
    return told


def _note(told: Told, event: Mapping[str, Any]) -> None:
    name = event.get("event")
    what = str(event.get("reason") or event.get("what") or event.get("error") or "")
    if name == "pipeline_failed":
        told.stopped = what
    elif name in OF_A_TARGET and "target" in event:
        told.tables.setdefault(_table(str(event["target"])), f"{name}: {what}")
    elif name == "ddl_not_understood":
        told.at_large.append(what)


def _table(target: str) -> Name:
    name = TargetName.parse(target)
    return name.namespace, name.table

"""The levels of the log, which may change while the daemon runs: in all, and of single actors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import structlog

from daemon.config.sections import LogSection

NUMBERS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "exception": 40,
           "critical": 50, "fatal": 50}  # fmt: skip
"""By the method that logs."""

NAMES: tuple[str, ...] = get_args(LogSection.model_fields["level"].annotation)
"""The levels that a configuration or a command may name."""


class LogLevels:
    """The first structlog processor: drops what is below the level. Any thread."""

    def __init__(self, level: str) -> None:
        self._common = NUMBERS[level]
        self._own: Mapping[str, int] = {}
        self._seen: set[str] = set()

    def set(self, level: str) -> None:
        """Of all that have no level of their own."""
        self._common = NUMBERS[level]

    def set_own(self, actor: str, level: str | None) -> None:
        """Of one actor (``fetcher``, or ``shop/fetcher`` of one pipeline) or of one pipeline
        (``shop/``); None: as all again."""
        own = {name: number for name, number in self._own.items() if name != actor}
        self._own = own if level is None else {**own, actor: NUMBERS[level]}

    def __call__(self, _: Any, method: str, event: Any) -> Any:
        """Drop the event, or pass it on."""
        self._seen.update(_names(event))
        if NUMBERS[method] < self._of(event):
            raise structlog.DropEvent
        return event

    def _of(self, event: Mapping[str, Any]) -> int:
        if not self._own:
            return self._common
        for name in _names(event):
            if name in self._own:
                return self._own[name]
        return self._common

    @property
    def seen(self) -> list[str]:
        """What events have come of, also of those that were dropped: names for ``set_own``."""
        return sorted(self._seen)


def _names(event: Mapping[str, Any]) -> tuple[str, ...]:
    """What an event counts as, the narrowest first."""
    pipeline, actor = event.get("pipeline"), str(event.get("actor") or "").split("-")[0]
    of_pipeline = () if pipeline is None else (f"{pipeline}/{actor}", f"{pipeline}/")
    return tuple(name for name in (*of_pipeline[:1], actor, *of_pipeline[1:]) if name)

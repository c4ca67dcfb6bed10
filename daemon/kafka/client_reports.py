"""Reads what librdkafka reports beside its messages: statistics, and log lines of its own."""

from __future__ import annotations

import json
from typing import Any

from actors.contract.messages import SourceState


def source_state(statistics: str) -> SourceState:
    """The connection's state in librdkafka's statistics (JSON)."""
    brokers = json.loads(statistics).get("brokers", {})
    return SourceState(any(broker.get("state") == "UP" for broker in brokers.values()))


class QuietLogger:
    """librdkafka's own log lines as our events."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def log(self, level: int, form: str, *args: object) -> None:
        """Called by confluent-kafka in place of ``logging.Logger.log``."""
        self._log.debug("librdkafka", level=level, line=form % args if args else form)

"""What clients beside the group's consumer take from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONNECTION = (
    "bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.",
    "enable.ssl.", "enable.sasl.",
)  # fmt: skip
"""How the names of those settings begin that are about the way to a broker, for any client."""


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a client beside the consumer takes from its settings; it logs nothing by itself."""
    # Its own log lines would go to standard error; what matters comes as the answer's error.
    return {k: v for k, v in settings.items() if k.startswith(CONNECTION)} | {"log_level": 0}

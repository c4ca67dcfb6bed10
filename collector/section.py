"""The configuration's sections of what comes before the stream: the log that comes along."""

from __future__ import annotations

from pydantic import Field

from settings.section import Section
from settings.units import Bytes, Seconds

DAY_S = 86_400.0


class BrokerSection(Section):
    """``[broker]``: a Kafka broker of one node that the daemon runs, on this machine alone.

    ``port`` 0: one that is free, chosen once. A topic keeps ``max_bytes`` and ``max_age_s`` at
    most, whichever is less, whether it has been read or not. ``heap_bytes`` is its JVM's.
    """

    embedded: bool = False
    port: int = Field(0, ge=0, le=65_535)
    max_bytes: Bytes = Field(16 << 30, ge=64 << 20)
    max_age_s: Seconds = Field(7 * DAY_S, ge=600)
    heap_bytes: Bytes = Field(256 << 20, ge=128 << 20)

"""How the source is polled: the settings of a fetcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.fetcher.recognition import RecognitionBounds
from changes.model.registry import Registry
from offsets.position import TopicPartition


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """How the source is polled.

    ``poll_timeout_s`` is how long a poll waits for ``max_messages``: the latency of a quiet
    source. While a share waits for room in a mailbox nothing is polled; only when that has taken
    ``patience_s`` are the partitions paused, for a pause throws away what the client has fetched
    ahead (a third of all traffic under load, measured). While paused, polls return nothing and
    only keep the membership: every ``paused_poll_s`` is plenty, and room in a mailbox wakes the
    fetcher by itself. ``ddl_not_understood_stops``: a statement about no table that can't be
    read stops the pipeline; else it is reported.
    """

    ddl_not_understood_stops: bool = False
    max_messages: int = 5000
    poll_timeout_s: float = 0.1
    patience_s: float = 1.0
    paused_poll_s: float = 0.25
    part_bytes: int = 64 << 20
    """Bytes of messages that lack parts, at most. Less: a large row of several shards at once
    stops the pipeline. More only costs memory."""
    recognition: RecognitionBounds = field(default_factory=RecognitionBounds)
    registry: Registry | None = None
    """Where the schemas of its records come from."""
    schema_patience_s: float = 60.0
    """How long a run that reads only what is there waits for a registry that does not answer."""
    until: Mapping[TopicPartition, int] | None = None
    """Where a run ends that reads only what is there. A topic whose format is not detected by then
    ends the run with an error, as does a schema that can't be had. None: the run goes on."""
    messages_per_s: float | None = None
    """What is read at most, on average over a second."""
    cut_every_s: float | None = None
    """How often all tables are cut at one boundary of the log. None: never, as in a run that ends
    where the log ends: that end is its one moment."""
    cut_patience_s: float = 10.0
    """How long a partition is held for others, whose messages are older."""
    paused: bool = False
    """A person paused reading in an earlier run."""
    dead_letters: bool = False
    """Messages that can't be looked at are stored and passed over, instead of stopping it all."""

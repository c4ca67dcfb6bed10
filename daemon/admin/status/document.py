"""The status document's members and their types. ``docs/watch.md`` says what they mean.

``status.py`` builds it; ``status``, ``top``, the page, ``/metrics`` and events read it. New members
may be added, existing ones keep their meaning: a reader may be newer or older than the daemon.
"""

from __future__ import annotations

from typing import Any, TypedDict

from collector.figures import CollectorFigures
from daemon.admin.status.cuts_member import Cuts, SideWork
from daemon.admin.status.observer import Silent as Silent
from daemon.operations.figures import JobFigures
from daemon.state.gate_figures import GateShown as GateShown
from daemon.state.room import StateFigures as StateFigures


class Error(TypedDict):
    """A target's last error; ``lasting``: it is not over."""

    reason: str
    seconds_ago: float | None
    lasting: bool


class NamedError(Error):
    """The last error of all targets."""

    target: str


class Kept(TypedDict):
    """What stands in a target's spill."""

    reason: str
    messages: int
    bytes: int
    full: bool
    lanes: dict[str, list[int]]


class Quarantined(Kept):
    """Of a target that its sink refuses."""

    releasing: bool


class Away(Kept):
    """Of a target whose sink does not answer."""

    seconds: float | None
    catching_up: bool


class Write(TypedDict):
    """A write in flight, or between two attempts."""

    rows: int
    attempt: int
    age_seconds: float
    retry_in_seconds: float | None


class Lag(TypedDict):
    """How far something is behind the log's end; None: not known."""

    lag_messages: int | None
    lag_seconds: float | None


class Summed(TypedDict):
    """Counts of targets, which a pipeline shows as their sum."""

    messages_replayed: int
    rows_read: int
    rows_written: int
    rows_stored: int
    values_nulled: int
    buffered_messages: int
    buffered_bytes: int
    staged_files: int
    staged_bytes: int


class Target(Lag, Summed):
    """One open target."""

    target: str
    phase: str
    freshness_seconds: float | None
    holds_frontier_of: list[str]
    waiting_seconds: float | None
    write: Write | None
    last_error: Error | None
    high_water_marks: dict[str, int]
    quarantine: Quarantined | None
    away: Away | None
    messages_read: int
    messages_dropped: int
    dead_letters: int
    ddl_not_understood: int
    writes: int
    write_seconds: float
    rows_may_differ: str | None


class Holder(TypedDict):
    """The lane that holds a frontier; ``messages``: how far that would move without it."""

    target: str
    offset: int
    messages: int


class OpenTransaction(TypedDict):
    """Records that the broker does not show yet."""

    offset: int
    messages: int
    seconds: float


class Partition(Lag):
    """One partition that is read here."""

    source: str
    log_end: int | None
    position: int
    frontier: int
    confirmed: int | None
    freshness_seconds: float | None
    unapplied_messages: int
    held_by: Holder | None
    open_transaction: OpenTransaction | None
    log_start: int | None
    retention_seconds: float | None
    retention_left_seconds: float | None


class Paused(TypedDict):
    """By a person."""

    seconds: float
    since_ms: int
    reason: str


class OffsetFile(TypedDict):
    """Where positions are stored."""

    saved_seconds_ago: float | None
    error: str | None


class DeadLetters(TypedDict):
    """Records that could not be applied. ``stored``: in this run. ``open``: of all that the store
    holds, those neither replayed nor discarded; null: not counted yet."""

    stored: int
    open: int | None
    waiting: int
    error: str | None


class SchemasAwaited(TypedDict):
    """What waits for a registry, of one topic."""

    messages: int
    schemas: list[str]


class Histogram(TypedDict):
    """``counts``: of each interval up to a bound, and of what is beyond the last one."""

    bounds: list[float]
    counts: list[int]
    sum: float


class Histograms(TypedDict):
    """Of a pipeline's writes."""

    write_seconds_histogram: Histogram
    write_freshness_seconds_histogram: Histogram


class Counts(Summed, Histograms):
    """What a pipeline counts."""

    messages_read: int
    messages_dropped: int
    messages_sent_again: int
    messages_passed_over: int
    messages_left_out: int
    tables_left_out: int
    left_out: dict[str, str]
    stale_acknowledgements: int
    parked_bytes: int
    formats: dict[str, str]
    formats_awaited: dict[str, int]
    schemas_awaited: dict[str, SchemasAwaited]
    messages_awaiting_schemas: int
    topics_gone: list[str]
    topics_gone_count: int
    targets_without_news: list[str]
    writes_in_flight: int
    oldest_write_seconds: float | None


class Reading(TypedDict):
    """Whether a pipeline reads, and what the broker does not give."""

    assigned: bool
    paused: bool
    paused_by_a_person: Paused | None
    held: bool
    broker_unreachable_seconds: float | None
    log_ends_unknown_seconds: float | None
    log_ends_error: str | None
    registry_away_seconds: float | None
    registry_error: str | None


class Pipeline(Lag, Counts, Reading):
    """One pipeline."""

    pipeline: str
    group: str
    stage: str
    failure: str | None
    freshness_seconds: float | None
    offset_file: OffsetFile
    dead_letters: DeadLetters
    cuts: Cuts | None
    counts: SideWork | None
    valid_through: SideWork | None
    last_error: NamedError | None
    rows_may_differ: dict[str, str]
    partitions: list[Partition]
    targets: list[Target]


class Session(TypedDict):
    """Spark's process."""

    pid: int | None
    age_seconds: float | None
    down_seconds: float | None
    rebuilt: int
    last_end: str | None


class Program(TypedDict):
    """A program beside the daemon, such as the embedded broker; ``seconds``: in this state."""

    program: str
    state: str
    seconds: float
    pid: int | None
    starts: int
    why: str | None


class Credential(TypedDict):
    """A certificate or token that ends."""

    credential: str
    expires_ms: int


class Facts(TypedDict):
    """The document but for what follows from it."""

    schema: int
    state: str
    version: str
    run: str
    pid: int
    uptime_seconds: float
    time_ms: int
    silent: list[Silent]
    spark: Session | None
    programs: list[Program]
    pipelines: list[Pipeline]
    paused_targets: dict[str, Paused]
    jobs: list[JobFigures]
    credentials: list[Credential]
    state_dir: StateFigures | None
    collectors: list[CollectorFigures]
    gates: list[GateShown]


class Status(Facts):
    """The whole document."""

    ready: bool
    healthy: bool
    conditions: list[dict[str, Any]]

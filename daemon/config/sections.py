"""The configuration's sections of the daemon itself, and Spark's.

Each says what its keys may be and their defaults; ``pipelines.py`` has those of pipelines and puts
all together, ``sparkwriter/sections.py`` those of sinks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from changes.model.model import (
    DdlPolicy,
    DropColumnPolicy,
    DropTablePolicy,
    LossyChangePolicy,
    NotUnderstoodPolicy,
    RenameTablePolicy,
    TruncatePolicy,
    UnknownDefaultPolicy,
)
from daemon.config.state_folder import DEFAULT
from settings.section import Section
from settings.units import Bytes, Seconds


def as_many_as_cores() -> int:
    """Writers where none are configured. A write costs mostly this machine's processor time, and
    more at once are more, smaller writes (decision 34). Two at least: one target's long write must
    not hold all others.
    """
    return min(max(2, len(os.sched_getaffinity(0))), 8)


def with_writers(value: Any) -> Any:
    """A file's text, with ``spark.writers`` under its present name ``daemon.writers``: it was that
    while all sinks were Spark's. Raises ValueError where both are set."""
    spark = value.get("spark") if isinstance(value, dict) else None
    if not isinstance(spark, dict) or "writers" not in spark:
        return value
    spark, daemon = dict(spark), value.get("daemon", {})
    writers = spark.pop("writers")
    if not isinstance(daemon, dict):  # the section's own check reports it
        return value | {"spark": spark}
    if "writers" in daemon:
        raise ValueError("daemon.writers and spark.writers say the same: set daemon.writers")
    return value | {"daemon": daemon | {"writers": writers}, "spark": spark}


STAGING_SCHEMES = ("file", "s3", "s3a", "hdfs")
"""What a URI of the staging area may begin with; a folder that all machines share is a ``file``."""


class DaemonSection(Section):
    """``[daemon]``: where it keeps its files and how it commits and ends."""

    state_dir: Path = Field(Path(DEFAULT), strict=False)
    state_max_bytes: Bytes | None = Field(None, ge=1 << 20)
    staging_dir: str = "var/staging"
    commit_interval_s: Seconds = Field(5.0, gt=0)
    drain_timeout_s: Seconds = Field(60.0, gt=0)
    processors: int = Field(3, ge=1, le=64)
    writers: int = Field(default_factory=as_many_as_cores, ge=1, le=64)
    stuck_after_s: Seconds = Field(120.0, gt=0)
    exit_when_stopped: bool = False
    frontier_debt_messages: int = Field(1_000_000, ge=1)
    frontier_debt_s: Seconds = Field(300.0, gt=0)

    @field_validator("staging_dir")
    @classmethod
    def _place(cls, value: str) -> str:
        scheme, separator, rest = value.partition("://")
        if separator and (scheme not in STAGING_SCHEMES or not rest.strip("/")):
            known = ", ".join(f"{known}://" for known in STAGING_SCHEMES)
            raise ValueError(f"{value!r} is neither a folder nor a URI that begins with {known}")
        return value.rstrip("/") if separator else value

    @property
    def staging_folder(self) -> Path:
        """Where this process stages: ``staging_dir``, or beside the state where that is a URI of
        something else than a folder."""
        scheme, separator, rest = self.staging_dir.partition("://")
        if scheme == "file" and separator:
            return Path("/" + rest.lstrip("/"))
        return self.state_dir / "staging" if separator else Path(self.staging_dir)

    @property
    def staging_is_shared(self) -> bool:
        """Whether the configuration says that Spark's executors reach ``staging_dir``."""
        return "://" in self.staging_dir

    @property
    def staging_uri(self) -> str | None:
        """Where staged files are copied for executors; None where they see this folder itself."""
        copied = self.staging_is_shared and not self.staging_dir.startswith("file://")
        return self.staging_dir if copied else None


class JobsSection(Section):
    """``[jobs]``: how many ended jobs stay listed, and the topics of notifications and signals."""

    keep: int = Field(50, ge=1, le=1000)
    notifications_topic: str = ""
    signals_topic: str = ""


UNIX = "unix:"
"""What ``metrics.listen`` begins with where it is a Unix socket."""

SHORTEST_TOKEN = 16
"""Characters. A shorter token can be guessed."""


class MetricsSection(Section):
    """``[metrics]``: where the page, ``/metrics``, ``/healthz`` and ``/readyz`` are; empty:
    nowhere."""

    listen: str = ""
    token: str = ""
    hosts: list[str] = Field(default_factory=list)
    most: int = Field(1000, ge=1)
    docs: str = ""
    """Where the documentation is, for links to the runbook: an address, or a folder."""

    @field_validator("token")
    @classmethod
    def _long_enough(cls, value: str) -> str:
        if value and (len(value) < SHORTEST_TOKEN or not (value.isascii() and value.isprintable())):
            raise ValueError(f"{SHORTEST_TOKEN} characters of ASCII are required, or more")
        return value

    @field_validator("listen")
    @classmethod
    def _address(cls, value: str) -> str:
        if value.startswith(UNIX):
            if not value.removeprefix(UNIX).startswith("/"):
                raise ValueError(f'{value!r} names no absolute path, such as "unix:/run/b.sock"')
            return value
        host, colon, port = value.rpartition(":")
        if value and not (host and colon and port.isdecimal() and int(port) <= 65535):
            raise ValueError(f'{value!r} is not host:port, such as "127.0.0.1:9464"')
        return value

    @property
    def address(self) -> tuple[str, int] | Path | None:
        """Host and port, or a Unix socket's path; None when nothing is served."""
        if self.listen.startswith(UNIX):
            return Path(self.listen.removeprefix(UNIX))
        host, _, port = self.listen.rpartition(":")
        return (host.strip("[]"), int(port)) if self.listen else None


def _web_address(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("an address that begins with http:// or https:// is required")
    return value


Webhook = Annotated[str, AfterValidator(_web_address)]
"""An address that documents are posted to; empty: none."""


class EventsSection(Section):
    """``[events]``: where conditions are reported as they begin and end; empty: nowhere."""

    file: str = ""
    webhook: Webhook = ""


class LogSection(Section):
    """``[log]``: one event a line; ``file`` empty means standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "text"
    file: str = ""


class BatchSection(Section):
    """``[batch]``: when a batch is due. It closes when no write of its target is in flight."""

    max_messages: int = Field(50_000, ge=1)
    max_bytes: Bytes = Field(16 << 20, ge=1)
    max_age_s: Seconds = Field(1.0, gt=0)


class MemorySection(Section):
    """``[memory]``: one budget for all messages held in memory, and one for staged files on disk.

    An eighth of the memory is librdkafka's queues, a quarter the mailboxes (reading goes on while
    batches are decoded), the rest the buffers. ``actors/runtime/lending.py`` shares mailboxes,
    buffers and staged files between the pipelines as they need them.
    """

    budget_bytes: Bytes = Field(256 << 20, ge=16 << 20)
    staged_bytes: Bytes = Field(8 << 30, ge=1 << 20)

    @property
    def mailboxes_bytes(self) -> int:
        """All mailboxes of the process."""
        return self.budget_bytes // 4

    @property
    def buffers_bytes(self) -> int:
        """All buffers of the process."""
        return self.budget_bytes * 5 // 8

    def queue_kbytes(self, part: float) -> int:
        """librdkafka's queue of a pipeline that has that part of all, in its unit."""
        return max(SMALLEST_QUEUE_KBYTES, int(self.budget_bytes * part / 8 / 1024))

    def piece_bytes(self, quota: float | None, processors: int) -> int:
        """A target's buffer of that size is staged behind a write; the pipeline has that quota."""
        whole = self.buffers_bytes * (1.0 if quota is None else quota)
        return max(1 << 20, int(whole / processors / 4))


SMALLEST_QUEUE_KBYTES = 1024
"""Of a pipeline. A fetch brings up to that much of each partition (``fetch.message.max.bytes``),
whatever the queue's bound: a smaller one saves nothing."""


_POLICY = DdlPolicy()


class DdlSection(Section):
    """``[pipeline.NAME.ddl]``: what becomes of statements that are not simply followed."""

    drop_column: DropColumnPolicy = _POLICY.drop_column
    drop_table: DropTablePolicy = _POLICY.drop_table
    truncate: TruncatePolicy = _POLICY.truncate
    rename_table: RenameTablePolicy = _POLICY.rename_table
    not_understood: NotUnderstoodPolicy = _POLICY.not_understood
    unknown_default: UnknownDefaultPolicy = _POLICY.unknown_default
    lossy_change: LossyChangePolicy = _POLICY.lossy_change

    @property
    def policy(self) -> DdlPolicy:
        """The section as the processors take it."""
        return DdlPolicy(**self.model_dump())


# ``[tracing]``: where spans go, and of how many batches.

TRACES = "/v1/traces"
"""Where OTLP/HTTP receivers take spans."""


class TracingSection(Section):
    """``endpoint`` empty: nothing is traced."""

    endpoint: str = ""
    sample: float = Field(0.1, gt=0, le=1, strict=False)
    headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("endpoint")
    @classmethod
    def _http(cls, value: str) -> str:
        if not value:
            return value
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError('an address such as "http://127.0.0.1:4318" is required')
        if url.username or url.password:
            raise ValueError("a password belongs into tracing.headers, which is shown nowhere")
        return value

    @property
    def url(self) -> str:
        """Where spans are posted to: an address without a path gets OTLP's."""
        whole = urlsplit(self.endpoint)
        return self.endpoint if whole.path.strip("/") else whole._replace(path=TRACES).geturl()

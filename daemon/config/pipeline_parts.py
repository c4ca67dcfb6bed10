"""Settings for what can't be applied: a part of a pipeline's section."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from changes.model.model import TargetName
from changes.routes.routing import Route
from changes.routes.shaping.names import unfit_names
from changes.routes.shaping.shape import NO_SHAPE, Shape
from offsets.cuts import KeepCuts
from settings.section import Section, flatten
from settings.units import Bytes, Seconds


class FaultSection(Section):
    """Nothing is skipped unless these settings ask for it. Then it is kept, never dropped."""

    on_bad_record: Literal["stop", "dead-letter"] = "stop"
    dead_letters: str = "file"
    dead_letter_retry_s: Seconds = Field(60.0, ge=0)
    retention_s: Seconds | None = Field(None, ge=3600)
    max_bad_records_per_hour: int = Field(1000, ge=1)
    on_refused_target: Literal["stop", "quarantine", "reload"] = "stop"
    quarantine_bytes: Bytes = Field(1 << 30, ge=1 << 20)
    on_quarantine_full: Literal["pause", "stop"] = "pause"
    away_after_s: Seconds = Field(60.0, gt=0)
    away_spill_bytes: Bytes = Field(8 << 30, ge=1 << 20)

    @field_validator("dead_letters")
    @classmethod
    def _known_store(cls, value: str) -> str:
        if value != "file" and not re.fullmatch(r"topic:[A-Za-z0-9._-]{1,249}", value):
            raise ValueError(f'"file" or "topic:NAME" is required, not {value!r}')
        return value

    @model_validator(mode="after")
    def _letters_to_remove(self) -> Self:
        if self.retention_s is not None and self.on_bad_record == "stop":
            raise ValueError('retention_s: no dead letter is kept with on_bad_record = "stop"')
        if self.retention_s is not None and self.dead_letter_topic is not None:
            raise ValueError("retention_s: letters in a topic expire by its retention.ms")
        return self

    @property
    def dead_letter_topic(self) -> str | None:
        """The topic's name, None if letters are kept in a file."""
        return None if self.dead_letters == "file" else self.dead_letters.removeprefix("topic:")


# ``[pipeline.NAME.quota]``: what one pipeline may take of what all share.

SMALLEST = 0.01
"""The smallest share of the memory that a quota sets, or leaves to the pipelines without one."""


class QuotaSection(Section):
    """``memory``: the pipeline may hold so much of ``[memory]``'s budgets at most; one without may
    hold what the others leave. ``writers``: so many of each sink's at a time. ``messages_per_s``:
    what is read at most, on average over a second."""

    memory: float | None = Field(None, ge=SMALLEST, le=1, strict=False)
    writers: int | None = Field(None, ge=1)
    messages_per_s: float | None = Field(None, ge=1, strict=False)


def unfit_quotas(quotas: Mapping[str, QuotaSection]) -> Iterator[str]:
    """What is wrong with the shares of the memory together."""
    fixed = [quota.memory for quota in quotas.values() if quota.memory is not None]
    left, others = 1 - sum(fixed), len(quotas) - len(fixed)
    if left < -1e-9:
        yield f"pipeline.*.quota.memory: together {sum(fixed):g}, which is more than 1"
    elif others and left < SMALLEST - 1e-9:
        yield (
            f"pipeline.*.quota.memory: together {sum(fixed):g}, which leaves less than "
            f"{SMALLEST:g} to the pipelines without one"
        )


# The section of a route: which tables go where, and what becomes of their rows.

WriteMode = Literal["upsert", "append"]
DEFAULT_MODE: WriteMode = "upsert"


class RouteSection(Section):
    """``[[pipeline.NAME.route]]``: which tables go where, and how."""

    tables: list[str] | None = None
    exclude: list[str] = Field(default_factory=list)
    target: str
    mode: WriteMode = DEFAULT_MODE
    write: str | None = None
    keys: list[str] | None = Field(None, min_length=1)
    types: dict[str, str] = Field(default_factory=dict)
    filter: str | None = Field(None, min_length=1)
    computed: dict[str, str] = Field(default_factory=dict)
    columns: list[str] | None = Field(None, min_length=1)
    drop_columns: list[str] = Field(default_factory=list)
    rename: dict[str, str] = Field(default_factory=dict)
    reader_renames: dict[str, str] = Field(default_factory=dict)
    delete: Literal["hard", "soft"] = NO_SHAPE.delete
    metadata: list[str] = Field(default_factory=list)
    history: bool = False
    shard: str | None = Field(None, min_length=1)
    mask: dict[str, str] = Field(default_factory=dict)
    mask_salt: str = ""
    partition_by: list[str] = Field(default_factory=list)
    sort_by: list[str] = Field(default_factory=list)
    table_properties: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_a_shape(self) -> Self:
        self.shape.check_keys(self.keys or ())
        for names in (self.reader_renames.keys(), self.reader_renames.values()):
            for problem in unfit_names("reader_renames", names):
                raise ValueError(problem)
        if self.mode == "append" and (self.metadata or self.history or self.delete == "soft"):
            raise ValueError(
                'delete, history, metadata: a changelog (mode = "append") shows each change itself'
            )
        return self

    @property
    def options(self) -> dict[str, str]:
        """What it asks of its sink, by key."""
        asked = {} if self.write is None else {"write": self.write}
        for key, value in (
            ("partition_by", self.partition_by),
            ("sort_by", self.sort_by),
            ("table_properties", self.table_properties),
        ):
            if value:
                asked[key] = json.dumps(value, ensure_ascii=False)
        return asked

    @property
    def shape(self) -> Shape:
        """What it makes of its rows. Raises ValueError."""
        return Shape(
            filter=self.filter or "",
            computed=tuple(self.computed.items()),
            masks=tuple(self.mask.items()),
            rename=tuple(self.rename.items()),
            columns=None if self.columns is None else tuple(self.columns),
            drop=tuple(self.drop_columns),
            delete=self.delete,
            metadata=tuple(self.metadata),
            history=self.history,
            shard=self.shard or "",
            shard_of=tuple(self.tables or ()) if self.shard else (),
            partition_by=tuple(self.partition_by),
            sort_by=tuple(self.sort_by),
            salt=self.mask_salt,
        )


# ``[pipeline.NAME.verify]``: how targets are compared with the source, and how often.


class VerifySection(Section):
    """``every``: seconds between two verifications; unset: only when a command asks for one."""

    every: Seconds | None = Field(None, ge=60)
    sample: float = Field(1.0, gt=0, le=1, strict=False)
    margin_s: Seconds = Field(10.0, ge=0, le=3600)
    idle_s: Seconds | None = Field(None, gt=0)
    wait_s: Seconds = Field(600.0, gt=0)


def _is_target(value: str) -> str:
    TargetName.parse(value)
    return value


TargetText = Annotated[str, AfterValidator(_is_target)]
"""A target's name as text."""


# ``[pipeline.NAME.cuts]``: how cuts are kept and listed.


class CutSection(Section):
    """All cuts of ``recent`` are kept, then one an hour for ``hourly_days``. ``wait``: what takes
    longer to come to one is left out. ``atomic``: tables of a database go from cut to cut."""

    table: TargetText | None = None
    recent: Seconds = Field(3600.0, ge=0)
    hourly_days: int = Field(7, ge=0, le=3660)
    wait: Seconds = Field(10.0, gt=0)
    incomplete: Literal["list", "skip"] = "list"
    atomic: bool = False

    @property
    def keep(self) -> KeepCuts:
        """Which cuts are kept."""
        return KeepCuts(self.recent, self.hourly_days)

    def listed_in(self, routes: Iterable[Route]) -> TargetName | None:
        """The table of a pipeline with these routes; None where their sinks are several and no
        table is named."""
        if self.table is not None:
            return TargetName.parse(self.table)
        sinks = {route.template.split(".")[0] for route in routes}
        return TargetName(sinks.pop(), "binlogd", "cuts") if len(sinks) == 1 else None


# The hours of a day in which something may begin. Pure; UTC.

DAY_S = 86_400

_TEXT = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """From one second of the day until another, over midnight where that is the smaller one."""

    begins_s: int
    ends_s: int

    @classmethod
    def parse(cls, text: str) -> Window:
        """From ``22:00-06:00``, in UTC. Raises ValueError."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f'{text!r} is no window: "22:00-06:00" is required, in UTC')
        h1, m1, h2, m2 = map(int, match.groups())
        begins, ends = h1 * 3600 + m1 * 60, h2 * 3600 + m2 * 60
        if begins == ends:
            raise ValueError(f"{text!r} is no window: it ends where it begins")
        return cls(begins, ends)

    def opens_in_s(self, unix_s: float) -> float:
        """Seconds until it is open: 0 while it is."""
        at = unix_s % DAY_S
        if (at - self.begins_s) % DAY_S < (self.ends_s - self.begins_s) % DAY_S:
            return 0.0
        return (self.begins_s - at) % DAY_S

    def __str__(self) -> str:
        begins, ends = (f"{s // 3600:02}:{s % 3600 // 60:02}" for s in (self.begins_s, self.ends_s))
        return f"{begins}-{ends} UTC"


# ``[load]``: how tables are filled from the source's own database.


class LoadSection(Section):
    """Of all pipelines. A database has bounds of its own, in ``[database.NAME]``."""

    concurrent: int = Field(1, ge=1, le=16)
    rows_per_s: int | None = Field(None, ge=1)
    chunk_rows: int = Field(200_000, ge=1000, le=10_000_000)
    by_positions: bool = True
    margin_s: Seconds = Field(60.0, ge=0, le=3600)
    settle_s: Seconds = Field(30.0, ge=0, le=3600)
    idle_s: Seconds | None = Field(None, gt=0)
    spill_bytes: Bytes = Field(8 << 30, ge=1 << 20)
    max_rows_unasked: int = Field(10_000_000, ge=0)
    attempts_per_hour: int = Field(3, ge=1, le=100)
    window: str | None = None

    @field_validator("window")
    @classmethod
    def _hours(cls, value: str | None) -> str | None:
        if value is not None:
            Window.parse(value)
        return value


# Tables of librdkafka settings: ``[kafka]`` and a pipeline's own.

DAEMON_OWNED_KAFKA = frozenset(
    {"group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"}
)
"""librdkafka settings on which exactly-once rests. binlogd sets them, a configuration may not."""


def check_kafka(value: Any) -> Any:
    """A table of librdkafka settings under flat names. Raises ValueError for binlogd's own."""
    if not isinstance(value, dict):
        return value
    flat = flatten(value)
    if owned := sorted(DAEMON_OWNED_KAFKA & flat.keys()):
        hint = " (the group is pipeline.NAME.group)" if "group.id" in owned else ""
        raise ValueError(f"{', '.join(owned)} is set by binlogd itself{hint}")
    return flat


KafkaSettings = Annotated[
    dict[str, str | int | float | bool],
    BeforeValidator(check_kafka, json_schema_input_type=dict[str, Any]),
]

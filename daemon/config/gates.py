"""``[gates.NAME]``: tables that are complete together, partition by partition, and who is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.owners import own_topics, target_owner
from daemon.config.pipeline_parts import KafkaSettings
from daemon.config.pipelines import PipelineSection
from daemon.config.sections import SHORTEST_TOKEN, JobsSection, Webhook
from offsets.gate_record import LATEST_MS
from settings.section import Section
from settings.units import Seconds, moment_of
from sparkwriter.sections import AnySink

DAY_S, SHORTEST_S, LONGEST_S = 86_400, 60, 366 * 86_400
"""Bounds of a partition's length. It is of whole minutes, since counts are by minute."""

LONGEST_REOPEN_S = 31 * 86_400.0
"""Beyond that a partition is reopened by hand alone."""

LONGEST_NAME = 64
"""Files, folders and keys of messages have it."""


class GateSection(Section):
    """One gate. ``from_``: where its first partition begins; None: with the first start."""

    tables: list[str] = Field(min_length=1)
    every: Seconds = Field(ge=SHORTEST_S, le=LONGEST_S)
    margin: Seconds = Field(0.0, ge=0, le=LONGEST_S)
    counts: bool = False
    empty: bool = False
    from_: str | None = Field(None, alias="from")
    reopen_for: Seconds = Field(7 * 86_400.0, ge=0, le=LONGEST_REOPEN_S)
    valid_through: bool = False
    success: str = ""
    topic: str = ""
    kafka: KafkaSettings = Field(default_factory=dict)
    webhook: Webhook = ""
    webhook_secret: str = ""

    @field_validator("every")
    @classmethod
    def _meets_days(cls, value: float) -> float:
        if value % 60 or (DAY_S % value and value % DAY_S):
            raise ValueError("whole minutes that divide a day are required, or whole days")
        return value

    @field_validator("from_")
    @classmethod
    def _moment(cls, value: str | None) -> str | None:
        if value is not None:
            moment_ms(value)
        return value

    @field_validator("success")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError(f"{value!r} is no absolute path")
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _long_enough(cls, value: str) -> str:
        if value and len(value) < SHORTEST_TOKEN:
            raise ValueError(f"{SHORTEST_TOKEN} characters are required, or more")
        return value

    @model_validator(mode="after")
    def _together(self) -> GateSection:
        if self.webhook_secret and not self.webhook:
            raise ValueError("webhook_secret: there is no webhook that it could sign for")
        if self.kafka and not self.topic:
            raise ValueError("kafka: there is no topic that it could be for")
        if len({*self.tables}) < len(self.tables):
            raise ValueError("tables: one is named twice")
        return self

    def secrets(self) -> Mapping[str, Any]:
        """Settings with secrets, under names that say so."""
        return {**self.kafka, "token": self.webhook, "secret": self.webhook_secret}

    @property
    def length_ms(self) -> int:
        """Of a partition."""
        return int(self.every) * 1000

    @property
    def margin_ms(self) -> int:
        """How far behind a partition's end the tables must be complete."""
        return round(self.margin * 1000)

    @property
    def from_ms(self) -> int | None:
        """``from_`` in Unix milliseconds."""
        return None if self.from_ is None else moment_ms(self.from_)

    @property
    def ways(self) -> tuple[str, ...]:
        """How it is told."""
        return tuple(way for way in ("success", "topic", "webhook") if getattr(self, way))


def moment_ms(text: str) -> int:
    """A time with its zone, in Unix milliseconds. Raises ValueError."""
    found_ms = int(moment_of(text, "2026-11-01T00:00:00Z").timestamp() * 1000)
    if found_ms < 0:
        raise ValueError(f"{text!r} is before 1970")
    if found_ms > LATEST_MS:
        raise ValueError(f"{text!r} is too late for any partition")
    return found_ms


def topic_settings(
    gate: GateSection, daemon: Mapping[str, str | int | float | bool]
) -> dict[str, str | int | float | bool]:
    """A client's settings for a gate's topic: its own overrule the daemon's, as of a pipeline."""
    return {**daemon, **gate.kafka}


def gate_topics(gates: Mapping[str, GateSection]) -> frozenset[str]:
    """The topics of gates that are in the daemon's Kafka."""
    own = (gate for gate in gates.values() if "bootstrap.servers" not in gate.kafka)
    return frozenset(gate.topic for gate in own if gate.topic)


def tables_that_say(
    gates: Mapping[str, GateSection], reaches: Callable[[str], bool]
) -> dict[str, tuple[str, ...]]:
    """By table that a pipeline ``reaches`` the gates of which it is to say through when it is
    complete."""
    found: dict[str, tuple[str, ...]] = {}
    for name, gate in sorted(gates.items()):
        for table in filter(reaches, gate.tables if gate.valid_through else ()):
            found[table] = (*found.get(table, ()), name)
    return found


def unfit_gates(
    gates: Mapping[str, GateSection],
    pipelines: Mapping[str, PipelineSection],
    routers: Mapping[str, Router],
    jobs: JobsSection,
    sinks: Mapping[str, AnySink],
) -> Iterator[str]:
    """What is wrong with gates, one line each. ``routers``: of each pipeline."""
    read = {topic: name for name, section in pipelines.items() for topic in section.topics}
    taken = own_topics(pipelines.values(), jobs)
    for name, gate in gates.items():
        at = f"gates.{name}"
        if not re.fullmatch(r"[a-z0-9_-]+", name) or len(name) > LONGEST_NAME:
            yield f"{at}: a name is small letters, digits, - and _, {LONGEST_NAME} at most"
        for table in gate.tables:
            pipeline = target_owner(routers, table)
            if pipeline is None:
                yield f"{at}.tables: {table!r}: no target of any route, such as lake.shop.orders"
            elif not pipelines[pipeline].remembers:
                yield (
                    f"{at}.tables: {table!r}: nothing is recorded of the tables of pipeline "
                    f'{pipeline}: add "file" to its offset_stores'
                )
            elif gate.valid_through and not sinks[TargetName.parse(table).sink].tags:
                yield f"{at}.valid_through: {table!r} is in no lake, and can't say that"
        if gate.topic in gate_topics({name: gate}):
            if gate.topic in read:
                yield f"{at}.topic: {gate.topic!r} is read by pipeline.{read[gate.topic]}"
            elif gate.topic in taken:
                yield f"{at}.topic: {gate.topic!r} has another use already"

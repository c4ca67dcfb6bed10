"""Gives a collector's connector the configuration that it should have, and knows its position."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from collector.connect.rest import ConnectorState, ConnectRest
from collector.connector.config import CLASSES, connector_name, topic_of
from collector.connector.patterns import new_patterns
from collector.memory import CollectorMemory
from collector.position import stop
from collector.topics import keep_topics
from collector.wiring import Wiring
from sources.base.topics import UnfitTopic

TOPICS_EVERY_S = 60.0
"""Between two looks whether the topics are as they must be. A producer sees a new partition within
five minutes."""


class Unmade(Exception):
    """No connector can be made: one line."""


class KeptConnector:
    """One thread's at a time. What asks Connect raises ConnectError; ``create`` and ``put_right``
    also UnfitTopic, NotAnswered, OSError."""

    def __init__(self, wiring: Wiring, memory: CollectorMemory, clock: Callable[[], float]) -> None:
        self._wiring, self._memory, self._clock = wiring, memory, clock
        self._connector = connector_name(wiring.name)
        self._topics_due_s = clock()
        self.edited: tuple[list[str], float] | None = None
        """The options that somebody had changed by hand, and when they were put right."""
        self._log: Any = structlog.get_logger().bind(actor="collector", collector=wiring.name)

    def position(self, rest: ConnectRest) -> Mapping[str, Any] | None:
        """As Connect has it; that there is one is remembered."""
        found = rest.offsets(self._connector, topic_of(self._wiring.name, self._wiring.section))
        if found is not None:
            self._memory.note(begun="yes")
        return found

    @property
    def had_position(self) -> bool:
        """Whether there was one."""
        return bool(self._memory.now.begun or self._memory.now.identity)

    @property
    def forgotten(self) -> str:
        """What a position that was there means. Debezium without one begins at the source's
        present, and says nothing of what was between."""
        topic = topic_of(self._wiring.name, self._wiring.section)
        return (
            f"Connect has no position of it any more under {topic!r}: its topics were lost or "
            "are others now ([connect] group, connect), or the collector's topic is another"
        )

    def create(self, rest: ConnectRest, wanted: Mapping[str, str]) -> str:
        """Make the connector; why its position is lost, or nothing. Raises Unmade."""
        if wanted["connector.class"] not in rest.plugins():
            raise Unmade(_without_plugin(wanted["connector.class"], self._wiring))
        keep_topics(self._wiring)
        self._memory.note(put=_fingerprint(wanted))
        # What a removed connector had read is known once it is there again: it reads nothing then.
        had = self.had_position
        rest.create(self._connector, wanted, stopped=had)
        self._log.info("collector_created", connector=self._connector)
        if had and self.position(rest) is None:
            return self.forgotten
        if had:
            rest.resume(self._connector)
        return ""

    def put_right(
        self,
        rest: ConnectRest,
        found: Mapping[str, str],
        wanted: Mapping[str, str],
        state: ConnectorState,
    ) -> None:
        """Give the connector that is ``found`` the configuration that it should have."""
        self._keep_topics(rest, state)
        if found == wanted:
            self._memory.note(put=_fingerprint(wanted))
            return
        differ = sorted(n for n in {*found, *wanted} if found.get(n) != wanted.get(n))
        if self._memory.now.put not in ("", _fingerprint(found)):
            self.edited = (differ, self._clock())
            self._log.warning("collector_edited", options=differ)
        self._memory.note(put=_fingerprint(wanted))
        if fresh := new_patterns(found, self._wiring.included()):
            # Their changes were left out so far: they are read first, and then loaded.
            self._memory.add_loads(fresh)
            stop(rest, self._connector)
            rest.put_config(self._connector, wanted)
            if state.connector != "STOPPED":
                rest.resume(self._connector)
        else:
            rest.put_config(self._connector, wanted)
        self._log.info("collector_configured", options=differ)

    def _keep_topics(self, rest: ConnectRest, state: ConnectorState) -> None:
        """Now and then. One that would lose records, or their order, is written no more."""
        if self._clock() < self._topics_due_s:
            return
        try:
            keep_topics(self._wiring)
        except UnfitTopic:
            if state.connector == "RUNNING":
                rest.stop(self._connector)
            raise
        self._topics_due_s = self._clock() + TOPICS_EVERY_S


def _fingerprint(config: Mapping[str, str]) -> str:
    text = json.dumps(dict(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_plugin(wanted: str, wiring: Wiring) -> str:
    known = wanted in list(CLASSES.values())[:3]
    way = (
        "binlogd setup --with collector brings it"
        if known
        else ("put its jars beside, in a folder of [connect] plugins")
    )
    if not wiring.section.is_embedded:
        way = "put its jars into that cluster's plugin.path"
    return f"Kafka Connect has no {wanted}: {way}"

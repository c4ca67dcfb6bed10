"""One collector: has its connector as it should be, and looks at what its source keeps for it.

A round asks the source, then Connect, and does what is due: create the connector, put right what
somebody has changed by hand, restart a failed task after a wait. Where the position is gone at the
source it stops the connector, and keeps it stopped until somebody decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from actors.runtime.programs import ProgramError
from changes.model.printable import reason_of
from collector.connect.clients import UnfitSettings
from collector.connect.rest import (
    ConnectAway,
    ConnectError,
    ConnectorState,
    ConnectRest,
)
from collector.connector.config import connector_name, topic_of
from collector.failures import Failures
from collector.figures import CollectorFigures, State, begins, reads_log
from collector.hands import Hands
from collector.kept_connector import KeptConnector, Unmade
from collector.memory import CollectorMemory
from collector.owed import Owed, Unpublished
from collector.reasons import hint, lost_in
from collector.seen_log import remember
from collector.source_watch import SourceWatch
from collector.watch.kept import KeptLog
from collector.wiring import Wiring
from databases.base.errors import DatabaseAway, DatabaseError
from sources.base.port import NotAnswered
from sources.base.topics import UnfitTopic

QUIET_S = 30.0
"""A log whose end has not moved for so long is read to its end, where the task runs."""

STUCK_S = 300.0
"""A position that has not moved for so long, where the log has more, is told; each heartbeat moves
it. A long statement, and the history of the schema at a start, take less."""


class Collector:
    """``look`` is its thread's; the others any thread's, one at a time."""

    def __init__(self, wiring: Wiring, clock: Callable[[], float] = time.monotonic) -> None:
        self._wiring, self._clock = wiring, clock
        self.name, self._connector = wiring.name, connector_name(wiring.name)
        self._memory = CollectorMemory(wiring.state_dir, wiring.name)
        self._source = SourceWatch(wiring)
        self._log: Any = structlog.get_logger().bind(actor="collector", collector=wiring.name)
        self._lock = threading.RLock()
        self._state: State = "waiting"
        self._reason = "not checked yet"
        self._since_s = clock()
        self._failures = Failures()
        self._kept = KeptLog()
        self._end: tuple[str, float] = ("", clock())
        self._position: Mapping[str, Any] | None = None
        self._moved: tuple[Mapping[str, Any] | None, float] = (None, clock())
        self._answers = True
        self._loaded = False
        self._kept_connector = KeptConnector(wiring, self._memory, clock)
        self._owed = Owed(wiring, self._memory, self._source, clock)
        self.hands = Hands(wiring, self._memory, self._source, self._failures, self._lock)

    def look(self) -> None:
        """One round. What fails is shown, and tried again by the next round."""
        with self._lock:
            try:
                self._load_memory()
                self._round()
            except ConnectAway as error:
                embedded = self._wiring.section.is_embedded
                self._turn("waiting" if embedded else "away", str(error))
            except NotAnswered as error:
                self._turn("waiting", f"the broker: {error}")
            except (
                ConnectError, UnfitTopic, UnfitSettings, ProgramError, Unpublished, Unmade, OSError
            ) as error:  # fmt: skip
                self._turn("unfit", reason_of(error))
            except DatabaseError as error:
                self._turn("source away", str(error))

    def guard(self) -> None:
        """Before the worker starts, which begins to read at once: at another server than before the
        connector can't log in until a round has looked whether its position holds there."""
        with self._lock:
            self._load_memory()
            known = self._memory.now.identity
            found = self._source.identity() if known else ""
            if found and found != known:
                self._log.warning("collector_source_is_another", was=known, now=found)
                self._wiring.files.forget_secrets(self.name)

    def _load_memory(self) -> None:
        if not self._loaded:
            self._memory.load()
            self._loaded = True

    @property
    def begins(self) -> bool:
        """Whether it is on its way up: a round is due soon. Any thread."""
        return begins(self._state, self._position)

    def position(self) -> Mapping[str, object]:
        """Where it has its position now: all that was in the source's log before it is in the
        topics. Empty where that is unknown, or gone at the source. Any thread; asks Connect."""
        rest = self._wiring.rest()
        if rest is None or self._memory.now.lost:
            return {}
        try:
            found = rest.offsets(self._connector, topic_of(self.name, self._wiring.section))
        except ConnectError:
            return {}
        return found if found is not None and reads_log(found) else {}

    def figures(self) -> CollectorFigures:
        """How it is now. Any thread; waits for nobody."""
        kept, now, wiring = self._kept, self._clock(), self._wiring
        again, edited = self._failures.again_s, self._kept_connector.edited
        return {
            "collector": self.name,
            "pipelines": list(wiring.pipelines()),
            "connect": wiring.section.connect or "embedded",
            "state": self._state,
            "seconds": round(now - self._since_s, 3),
            "reason": self._reason,
            "restarts": self._failures.restarts,
            "restart_in_seconds": None if again is None else round(max(0.0, again - now), 3),
            "position": {name: str(value) for name, value in (self._position or {}).items()},
            "beyond_bytes": kept.bytes,
            "beyond_seconds": None if kept.seconds is None else round(kept.seconds, 3),
            "purge_seconds": None if kept.purge_s is None else round(kept.purge_s, 3),
            "room_bytes": kept.room_bytes,
            "edited": [] if edited is None else edited[0],
            "edited_seconds": None if edited is None else round(now - edited[1], 3),
            "tables": list(wiring.patterns()),
            "on_lost_position": wiring.section.on_lost_position,
        }

    def close(self) -> None:
        """End its connection to the source."""
        with self._lock:
            self._source.close()

    # A round.

    def _round(self) -> None:
        rest = self._wiring.rest()
        if rest is None:
            self._turn("waiting", "Kafka Connect is not up yet")
            return
        if self._memory.now.removed:
            if rest.config(self._connector) is not None:
                self.hands.remove(topics=False)  # the removal was cut short
            self._turn("removed", "it was removed by hand, and its section is still there")
            return
        found, state = rest.config(self._connector), rest.state(self._connector)
        away = self._look_at_source(rest, found, state)
        if self._memory.now.lost or self._is_lost(state):
            self._stop_lost(rest, state)
            return
        flavor = self._source.flavor
        if flavor is None:
            self._turn("source away", away)
            return
        self._have_secrets(rest, found)
        if not away:
            self._owed.publish(began=found is not None or self._kept_connector.had_position)
        wanted = self._wiring.wanted(flavor)
        if found is None and not self._answers:
            self._turn("source away", away)
            return
        if found is None:
            self._create(rest, wanted)
            return
        self._kept_connector.put_right(rest, found, wanted, state)
        self._follow(rest, state, away)

    def _look_at_source(
        self, rest: ConnectRest, found: Mapping[str, str] | None, state: ConnectorState
    ) -> str:
        """What it keeps; why it does not tell, or nothing."""
        try:
            self._position = self._kept_connector.position(rest)
            if found is not None and self._position is None and self._kept_connector.had_position:
                self._lose(self._kept_connector.forgotten)
            kept = self._source.look(
                lambda: self._kept_connector.position(rest),
                self._position,
                self._memory.now.identity,
                bool(self._memory.now.by_file),
            )
        except DatabaseError as error:
            self._kept = KeptLog()
            self._answers = not isinstance(error, DatabaseAway)
            return str(error)
        self._answers = True
        now = self._clock()
        if kept.end != self._end[0]:
            self._end = (kept.end, now)
        if state.runs and now - self._end[1] >= QUIET_S:
            kept = replace(kept, bytes=0, seconds=0.0) if kept.bytes is not None else kept
        self._kept = kept
        if self._position != self._moved[0] or not (state.runs and kept.bytes):
            self._moved = (self._position, now)
        if lost := remember(self._memory, kept):
            self._lose(lost)
        elif kept.identity and self._position is not None:
            self._memory.note(identity=kept.identity)
        return ""

    def _is_lost(self, state: ConnectorState) -> bool:
        if state.failed and (why := lost_in(state.trace)):
            self._lose(why)
        return bool(self._memory.now.lost)

    def _lose(self, why: str) -> None:
        if not self._memory.now.lost:
            tables = list(self._wiring.patterns())
            self._log.error("collector_position_lost", reason=why, tables=tables)
            self._memory.note(lost=why)

    def _stop_lost(self, rest: ConnectRest, state: ConnectorState) -> None:
        """It has no task from now on. If configured, it starts again, and its tables are loaded."""
        if state.connector not in ("STOPPED", "MISSING"):
            rest.stop(self._connector)
        self._turn("lost", self._memory.now.lost)
        if self._wiring.section.on_lost_position == "load" and not self._kept.unread:
            self.hands.reset()

    def _have_secrets(self, rest: ConnectRest, found: Mapping[str, str] | None) -> None:
        """Rotated ones are read by a restart alone."""
        if self._wiring.keep_secrets() and found is not None:
            self._log.info("collector_secrets_changed")
            rest.restart(self._connector)

    def _create(self, rest: ConnectRest, wanted: Mapping[str, str]) -> None:
        lost = self._kept_connector.create(rest, wanted)
        if lost:
            self._lose(lost)
            self._stop_lost(rest, rest.state(self._connector))
        else:
            self._turn("starting", "")

    def _follow(self, rest: ConnectRest, state: ConnectorState, away: str) -> None:
        """Show the task's state; restart a failed one when it is due."""
        failures, now = self._failures, self._clock()
        if state.runs:
            failures.runs(now)
            if self._position is not None:
                self._owed.load()
            if now - self._moved[1] >= max(STUCK_S, 3 * self._wiring.section.heartbeat_s):
                self._turn("failed", self._stuck())
                return
            left = f"the source does not tell: {away}" if away else self._owed.lines()
            self._turn("running", "; ".join(filter(None, (left, self._memory.now.doubt))))
        elif state.failed and not self._answers:
            self._turn("source away", away)  # what answers next may be another server
        elif state.failed:
            self._failed(rest, state)
        elif state.connector in ("PAUSED", "STOPPED"):
            self._turn("paused", "on request")
        else:
            self._turn("starting", "")

    def _stuck(self) -> str:
        minutes = (self._clock() - self._moved[1]) / 60
        return (
            f"its task runs, and its position has not moved for {minutes:.0f} min, though the log "
            f"has {self._kept.bytes} bytes more: binlogd collector restart connects it again"
        )

    def _failed(self, rest: ConnectRest, state: ConnectorState) -> None:
        failures, now = self._failures, self._clock()
        out = hint(state.trace, self.name)
        if self._kept.taken and "slot" in out:
            out += f" (it is {self._kept.taken})"
        self._turn("failed", f"{state.why}; {out}" if out else state.why)
        if failures.failed(now):
            self._log.error("collector_failed", reason=self._reason, attempt=failures.count)
        elif failures.due(now):
            rest.restart(self._connector, only_failed=True)
            self._log.info("collector_restarted", attempt=failures.count)

    def _turn(self, state: State, reason: str) -> None:
        if state != self._state:
            self._state, self._since_s = state, self._clock()
            told = {"reason": reason} if reason else {}
            self._log.info("collector_state", state=state, **told)
        self._reason = reason

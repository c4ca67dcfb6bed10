"""One configured gate: closes its partitions, reopens them, and records who is to be told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from changes.model.printable import reason_of
from daemon.cli.gate.held_minutes import HeldMinutes, LateChanges
from daemon.cli.gate.looking import REFUSED, GateRefused, News, by_pipeline, kind_of
from daemon.cli.gate.partition import OpenPartition
from daemon.cli.gate.ways import SuccessFolder
from daemon.config.config import Config
from daemon.state.gate_store import DamagedGate, GateStore, LookFound, WayFailure
from offsets import gate_record as rule
from offsets.gate_record import GateFinding, GateRecord, Notice, iso
from settings.counted import counted
from settings.shell import quoted

SHOW_EVERY_MS = 30_000
"""What a look found is written so often at least, so that others see that somebody looks."""

LATE_EVERY_MS = 60_000
"""The tables of counts get something every minute."""


class GateKeeper:
    """Looks on one thread; ``pending``, ``taken`` and ``failed`` are for any. The folder's lock is
    held meanwhile."""

    def __init__(
        self, config: Config, gate: str, tell: Callable[[str], None], clock: Callable[[], int]
    ) -> None:
        """``clock``: Unix milliseconds. ``tell`` gets a line each."""
        self.gate, self.section = gate, config.gates[gate]
        self._config, self._clock = config, clock
        self._say = tell
        self._store = GateStore(config.daemon.state_dir)
        self._lock = threading.Lock()
        self._record: GateRecord | None = None
        self._open: dict[int, OpenPartition] = {}
        self._news: dict[int | None, News] = {}
        self._failing: dict[str, WayFailure] = {}
        self._found: tuple[int | None, Mapping[str, str]] = (None, {})
        self._shown: LookFound | None = None
        self._showing = threading.Lock()
        self._looking_ms: int | None = None
        self._late_ms = 0
        self._late = LateChanges()

    def look(self) -> bool:
        """Look once, and close what is complete, one after the other; whether nothing that is due
        is left open."""
        self._looking_ms = self._clock()
        try:
            good = self._look()
        finally:
            self._looking_ms = None
        self.show()
        return good

    def _look(self) -> bool:
        shut: Mapping[str, str] = {}
        begin: int | None = None
        try:
            record = self._begun()
            self._reopen_requested(record)
            self._reopen_late(record)
            begin, shut = self._close()
        except (*REFUSED, DamagedGate, OSError) as error:
            shut = dict.fromkeys(self.section.tables, self._config.redactor.text(reason_of(error)))
        self._tell_news(begin, shut)
        self._found = begin, shut
        return not shut

    # What is recorded.

    def _begun(self) -> GateRecord:
        """The record; of a gate that has closed nothing, one that begins where it is to. Raises
        GateRefused, DamagedGate, OSError."""
        if (record := self._record) is None:
            record = self._store.record(self.gate)
            length_ms, now_ms = self.section.length_ms, self._clock()
            if record is not None and record.length_ms != length_ms:
                if record.closed:
                    raise GateRefused(
                        f"every was {record.length_ms // 1000} s when its partitions closed: set "
                        f"that, or stop binlogd-gates and begin anew by `binlogd gate forget "
                        f"{quoted(self.gate)}`"
                    )
                record = None
            from_ms = self.section.from_ms
            if record is None or (from_ms is not None and not record.closed):
                moment_ms = now_ms if from_ms is None else from_ms
                record = rule.new_record(self.gate, length_ms, moment_ms)
                self._store.save(record)
            with self._lock:
                self._record = self._of_today(record)
        return record

    def _of_today(self, record: GateRecord) -> GateRecord:
        """Without what waits for ways that are not configured any more."""
        left = rule.only_by(record, self.section.ways)
        lost = {way for notice in record.notices for way in notice.ways} - {*self.section.ways}
        for way in sorted(lost):
            number = counted(len(rule.pending(record, way)), "notification")
            self._tell(f"{way} is not configured any more: {number} given up")
        if left != record:
            self._store.save(left)
        return left

    def _put(self, change: Callable[[GateRecord], GateRecord]) -> GateRecord:
        """Record a change, durably. Raises OSError, and then nothing has changed."""
        with self._lock:
            assert self._record is not None
            changed = change(self._record)
            if changed != self._record:
                self._store.save(changed)
                self._record = changed
            return changed

    # What closes.

    def _close(self) -> tuple[int | None, Mapping[str, str]]:
        """The oldest partition that is due and shut, with the reasons; None: none is."""
        shut: dict[int, Mapping[str, str]] = {}
        while todo := [each for each in self._due() if each not in shut]:
            begin = todo[0]
            if why := self._is_full():
                return begin, dict.fromkeys(self.section.tables, why)
            part = self._open.get(begin)
            if part is None:
                part = OpenPartition(self._config, self.section, begin, self._tell)
                self._open[begin] = part
            looked = part.look()
            if looked.finding is None:
                shut[begin] = looked.shut
                continue
            self._closed(begin, looked.finding)
        return next(iter(shut.items()), (None, {}))

    def _is_full(self) -> str:
        """Why nothing may close now: what a way has not taken is lost nowhere, and is bounded."""
        assert self._record is not None
        full = rule.full(self._record, self.section.ways)
        if not full:
            return ""
        return (
            f"{rule.MOST_PENDING:,} notifications wait for {', '.join(full)}: nothing closes until "
            "it takes some"
        )

    def _closed(self, begin: int, finding: GateFinding) -> None:
        now_ms, ways = self._clock(), self.section.ways
        record = self._put(lambda r: rule.closed(r, begin, now_ms, finding, ways))
        del self._open[begin]
        self._news.clear()
        self._found = None, {}
        self.show()  # many may close in one look
        version = next(each.version for each in record.closed if each.begin_ms == begin)
        end = iso(begin + record.length_ms)
        self._tell(f"{iso(begin)} to {end}: closed, version {version}")

    def _due(self) -> list[int]:
        assert self._record is not None
        return rule.due(self._record, self._clock(), self.section.margin_ms)

    # What is reopened.

    def _reopen_requested(self, record: GateRecord) -> None:
        for begin in self._store.requests(self.gate):
            try:
                rule.check_closed(record, begin)
                self._reopen(begin, "by hand")
            except rule.NotClosed as error:
                self._tell(f"not reopened: {error}")
            self._store.done(self.gate, begin)

    def _reopen_late(self, record: GateRecord) -> None:
        """Where a table of counts has got something for a closed partition since, and it is another
        number. The log is not read for that."""
        now_ms = self._clock()
        closed = rule.watched(record, now_ms, round(self.section.reopen_for * 1000))
        if not closed or not self.section.counts or _is_soon(now_ms, self._late_ms, LATE_EVERY_MS):
            return
        self._late_ms = now_ms
        try:
            held = HeldMinutes(by_pipeline(self._config, self.section.tables))
            for begin, why in self._late.changed(held, closed, record.length_ms):
                self._reopen(begin, why)
        except REFUSED as error:  # what is due closes nevertheless
            why = self._config.redactor.text(reason_of(error))
            self._tell_news(None, {"late changes": f"can't be looked for: {why}"})

    def _reopen(self, begin: int, why: str) -> None:
        """Its mark goes first: who looks for it begins nothing upon rows that have changed. Where
        it can't be removed now, it is by its turn."""
        if self.section.success:
            with suppress(OSError):
                SuccessFolder(Path(self.section.success), self.gate).remove(begin)
        now_ms, tables, ways = self._clock(), self.section.tables, self.section.ways
        self._put(lambda r: rule.reopened(r, begin, now_ms, tables, ways))
        self._tell(f"{iso(begin)}: reopened: {why}")

    # Who is told.

    def pending(self, way: str) -> tuple[Notice, ...]:
        """What a way has not taken yet, in order."""
        with self._lock:
            return () if self._record is None else rule.pending(self._record, way)

    def is_idle(self, way: str) -> bool:
        """Whether a way has something to take that was not tried in vain."""
        return way not in self._failing and bool(self.pending(way))

    def taken(self, way: str, ids: Iterable[str]) -> None:
        """A way has taken these. Raises OSError."""
        gone = [*ids]
        self._put(lambda record: rule.taken(record, way, gone))

    def failed(self, way: str, reason: str | None) -> None:
        """A way takes nothing, for this reason; None: it does again. Told where it is news."""
        with self._lock:
            before = self._failing.pop(way, None)
            if reason is None:
                is_new = before is not None
            else:
                reason = self._config.redactor.text(reason)
                since = self._clock() if before is None else before.since_ms
                self._failing[way] = WayFailure(reason, since)
                is_new = before is None or kind_of(before.reason) != kind_of(reason)
        if is_new:
            self._tell(f"{way}: {reason or 'is told again'}")

    # What people see.

    def _tell_news(self, begin: int | None, shut: Mapping[str, str]) -> None:
        if not shut:
            self._news.clear()  # the same is news again
        news = self._news.setdefault(begin, News())
        for line in news.of(shut):
            self._tell(line if begin is None else f"{iso(begin)}: {line}")

    def _tell(self, line: str) -> None:
        self._say(f"gate {self.gate}: {line}")

    def show(self) -> None:
        """Have others see what the last look found, and which way takes nothing. On the thread that
        looks."""
        with self._lock:
            found = LookFound(self._clock(), *self._found, dict(self._failing))
        with self._showing:
            before = self._shown
            same = before is not None and replace(before, at_ms=found.at_ms) == found
            if same and before is not None and _is_soon(found.at_ms, before.at_ms, SHOW_EVERY_MS):
                return
            try:
                self._note(found)
            except OSError as error:
                self._tell_news(None, {"its look": f"can't be shown: {reason_of(error)}"})

    def show_looking(self) -> None:
        """Have others see that a look takes long, as one that counts a day of the log. Any thread.
        Raises OSError."""
        with self._showing:
            now_ms, since_ms = self._clock(), self._looking_ms
            if since_ms is None or _is_soon(now_ms, since_ms, SHOW_EVERY_MS):
                return
            before = self._shown or LookFound(now_ms)
            self._note(replace(before, at_ms=now_ms, looking_ms=since_ms))

    def _note(self, found: LookFound) -> None:
        self._store.note(self.gate, found)
        self._shown = found


def _is_soon(now_ms: int, last_ms: int, every_ms: int) -> bool:
    """Whether less time than that has passed. Never by a clock that was set back meanwhile."""
    return 0 <= now_ms - last_ms < every_ms

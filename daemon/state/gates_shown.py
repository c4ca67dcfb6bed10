"""Makes what people see of gates of their files alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from daemon.config.gates import GateSection
from daemon.state.gate_figures import ClosedShown, GateShown, Undelivered
from daemon.state.gate_store import DamagedGate, GateStore, LookFound
from offsets.gate_record import GateRecord, iso, pending


class GateFiles:
    """Reads the files of one state directory, again where they have changed. Any thread."""

    def __init__(self, state_dir: Path) -> None:
        self._store, self._lock = GateStore(state_dir), threading.Lock()
        self._read: dict[str, tuple[object, GateRecord | None, LookFound | None]] = {}

    def shown(
        self, gates: Mapping[str, GateSection], now_ms: int, others: bool = False
    ) -> list[GateShown]:
        """The configured gates; ``others``: also those of which files are left. Raises nothing."""
        found = [self._one(name, True, now_ms) for name in gates]
        if others:
            left = (name for name in self._store.names() if name not in gates)
            found += [self._one(name, False, now_ms) for name in left]
        return found

    def _one(self, gate: str, is_configured: bool, now_ms: int) -> GateShown:
        record, look, error = None, None, None
        try:
            record, look = self._files(gate)
        except (DamagedGate, OSError) as fault:
            error = str(fault)
        open_ = [] if record is None else [each for each in record.closed if each.is_open]
        return {
            "gate": gate,
            "configured": is_configured,
            "last": None if record is None else _last(record),
            "next": None if record is None else _span(record, record.next_ms),
            "reopened": [iso(each.begin_ms) for each in open_],
            "shut_from": None if look is None or look.begin_ms is None else iso(look.begin_ms),
            "shut": {} if look is None else dict(look.shut),
            "looked_seconds": None if look is None else _since(look.at_ms, now_ms),
            "looking_seconds": _looking_s(look, now_ms),
            "undelivered": {} if record is None else _undelivered(record, look, now_ms),
            "error": error,
        }

    def _files(self, gate: str) -> tuple[GateRecord | None, LookFound | None]:
        with self._lock:
            stamp = self._store.stamp(gate)
            known = self._read.get(gate)
            if known is None or known[0] != stamp:
                known = stamp, self._store.record(gate), self._store.look(gate)
                self._read[gate] = known
            return known[1:]


def _last(record: GateRecord) -> ClosedShown | None:
    begin_ms = record.next_ms - record.length_ms
    for each in record.closed:
        if each.begin_ms == begin_ms:
            begin, through = _span(record, begin_ms)
            closed = iso(each.at_ms)
            return {"begin": begin, "through": through, "version": each.version, "closed": closed}
    return None


def _span(record: GateRecord, begin_ms: int) -> list[str]:
    return [iso(begin_ms), iso(begin_ms + record.length_ms)]


def _since(then_ms: int, now_ms: int) -> float:
    return round(max(0, now_ms - then_ms) / 1000, 3)


def _looking_s(look: LookFound | None, now_ms: int) -> float | None:
    if look is None or look.looking_ms is None:
        return None
    return _since(look.looking_ms, now_ms)


def _undelivered(record: GateRecord, look: LookFound | None, now_ms: int) -> dict[str, Undelivered]:
    ways = sorted({way for notice in record.notices for way in notice.ways})
    found: dict[str, Undelivered] = {}
    for way in ways:
        failure = None if look is None else look.failing.get(way)
        found[way] = {
            "notifications": len(pending(record, way)),
            "reason": None if failure is None else failure.reason,
            "seconds": None if failure is None else _since(failure.since_ms, now_ms),
        }
    return found

"""Through when gates have found tables complete, of their files alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from daemon.state.gate_store import DamagedGate, GateStore
from offsets.gate_record import complete_through, iso


class GatesThrough:
    """Reads the files of one state directory."""

    def __init__(self, state_dir: Path, tables: Mapping[str, tuple[str, ...]]) -> None:
        """``tables``: by table its gates."""
        self._store, self._tables = GateStore(state_dir), tables

    def moments(self) -> tuple[dict[str, dict[str, str]], str | None]:
        """By table, of each gate that has closed something of it, its moment as text; and why some
        gate's file can't be read. Its tables are not there then: they would take back what they
        say."""
        found: dict[str, dict[str, str]] = {}
        unread: str | None = None
        for table, gates in self._tables.items():
            try:
                read = {gate: self._through(gate, table) for gate in gates}
            except (DamagedGate, OSError) as error:
                unread = str(error)
            else:
                found[table] = {gate: at for gate, at in read.items() if at is not None}
        return found, unread

    def _through(self, gate: str, table: str) -> str | None:
        record = self._store.record(gate)
        moment_ms = None if record is None else complete_through(record, table)
        return None if moment_ms is None else iso(moment_ms)

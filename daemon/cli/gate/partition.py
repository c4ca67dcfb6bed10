"""One partition of a gate that is not closed: looks whether its tables are complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from daemon.cli.gate.counted import CountsAgree
from daemon.cli.gate.held_minutes import HeldMinutes
from daemon.cli.gate.looking import REFUSED, by_pipeline, gates_of, look_at
from daemon.cli.gate.watch import PipelineGate
from daemon.config.config import Config
from daemon.config.gates import GateSection
from offsets.counts import RowCounts
from offsets.gate_record import GateFinding
from offsets.store import StoreError


@dataclass(frozen=True, slots=True)
class PartitionLook:
    """``shut``: by table why the partition is not complete. ``finding``: it is, by this."""

    shut: Mapping[str, str]
    finding: GateFinding | None = None


class OpenPartition:
    """One thread's. A fault is a reason, and the next look begins anew."""

    def __init__(
        self, config: Config, section: GateSection, begin_ms: int, tell: Callable[[str], None]
    ) -> None:
        self._config, self._section, self._tell = config, section, tell
        end_ms = begin_ms + section.length_ms
        self._through_ms = end_ms + section.margin_ms
        self.minutes = range(begin_ms // 60_000, end_ms // 60_000)
        self._gates: Sequence[PipelineGate] | None = None
        self._counted: CountsAgree | None = None

    def look(self) -> PartitionLook:
        """Look once. Raises nothing that a later look may not meet again."""
        try:
            return self._look()
        except REFUSED as error:
            why = str(error)
        except (StoreError, OSError) as error:
            why = f"what is recorded can't be read: {error}"
        self._gates = None
        return PartitionLook(dict.fromkeys(self._section.tables, self._config.redactor.text(why)))

    def _look(self) -> PartitionLook:
        if self._gates is None:
            self._counted = (
                CountsAgree(self._config, self.minutes) if self._section.counts else None
            )
            self._gates = gates_of(
                self._config, self._section.tables, self._through_ms, self._tell,
                empty=self._section.empty, counted=self._counted,
            )  # fmt: skip
        looked = look_at(self._config, self._gates)
        shut = {name: why for each in looked for name, why in each.shut.items()}
        if shut:
            return PartitionLook(shut)
        ends = {str(source): end for each in looked for source, end in sorted(each.ends.items())}
        return PartitionLook({}, self._finding(ends))

    def _finding(self, ends: Mapping[str, int]) -> GateFinding:
        """The counts are read behind the look: all that it has seen is in them, and what comes
        later is another number."""
        tables = tuple(self._section.tables)
        if self._counted is None:
            return GateFinding(tables, ends)
        counts: Mapping[str, RowCounts] = {**self._counted.in_log}
        held = HeldMinutes(by_pipeline(self._config, tables))
        if not held:
            return GateFinding(tables, ends, True, counts)
        now = held.of(self.minutes)
        return GateFinding(tables, ends, True, {**counts, **now.counts}, now.made)

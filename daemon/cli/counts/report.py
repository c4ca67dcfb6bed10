"""What is said of each table: agrees, differs, or can't be told, and why. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from daemon.cli.base.texts import time_text
from daemon.cli.counts.against import LackingMinute, SourceSays, lacking_minute_line
from daemon.cli.counts.held_side import HeldDifference, TargetHolds
from daemon.cli.counts.passed import waits_for
from daemon.cli.counts.result import CellKey, LackingTransaction, Untold
from daemon.cli.counts.scan import Scanned
from daemon.operations.engine.source_watermarks import some
from offsets.counts import RowCounts
from offsets.snapshot import Snapshot
from settings.counted import counted

Verdict = Literal["agrees", "differs", "not told"]

NOTHING_TELLS = "nothing in this log says what should have come"


BY_ENDS = "transactions"
"""Who said it: ends of transactions in the log."""

NEVER_SEEN = (
    "nothing was ever written to it, and no change of it is in this range: a name that is misspelt"
    " looks the same"
)


@dataclass(frozen=True, slots=True)
class TableReport:
    """One target. ``expected`` None: not told of all. ``holds``: what it holds; None where that is
    not counted. ``why``: what can't be told, a line each. ``says``: what is said beside the log;
    None where ENDs alone say something."""

    target: str
    pipeline: str
    verdict: Verdict
    found: RowCounts
    expected: int | None
    read: int
    why: tuple[str, ...]
    holds: TargetHolds | None = None
    says: SourceSays | None = None

    @property
    def said_by(self) -> str | None:
        """Who said how many there are; None where nobody did."""
        if self.says is not None:
            return self.says.by
        return None if self.expected is None else BY_ENDS


def reports(
    pipeline: str,
    asked: Collection[str],
    scanned: Scanned,
    recorded: Snapshot,
    may_be_empty: bool = False,
) -> list[TableReport]:
    """Of each asked target, in order. ``may_be_empty``: one that nobody knows anything of agrees;
    else it can't be told."""
    return [_report(pipeline, target, scanned, recorded, may_be_empty) for target in asked]


def targets_in(scanned: Scanned, recorded: Snapshot) -> list[str]:
    """All targets of a pipeline, of what is recorded and of what was read."""
    found = scanned.found
    named = set(found.lacking) | {target for each in found.untold for target in each.targets}
    named |= (scanned.says or {}).keys()
    return sorted({key.target for key in found.cells} | named | {*recorded.targets, *found.read})


def _report(
    pipeline: str, target: str, scanned: Scanned, recorded: Snapshot, may_be_empty: bool
) -> TableReport:
    found = scanned.found
    cells = [cell for key, cell in found.cells.items() if key.target == target]
    total = RowCounts(
        sum(each.found.inserted for each in cells),
        sum(each.found.updated for each in cells),
        sum(each.found.deleted for each in cells),
    )
    told = [each.expected for each in cells if each.expected is not None]
    holds = None if scanned.holds is None else scanned.holds.get(target, TargetHolds())
    says = None if scanned.says is None else scanned.says.get(target, scanned.nothing)
    why = (*_why(target, scanned, recorded, says), *(() if holds is None else holds.why))
    known = {*recorded.targets, *found.lacking, *found.read, *(scanned.says or ())}
    if not (why or may_be_empty or cells or target in known):
        why = (NEVER_SEEN,)
    differs = holds is not None and bool(holds.differences or holds.open)
    differs = differs or target in found.lacking or (says is not None and bool(says.lacking))
    verdict: Verdict = "differs" if differs else "not told" if why else "agrees"
    whole = len(told) == len(cells) and bool(found.ends) and not (why and not differs)
    expected = (sum(told) if whole else None) if says is None else says.expected
    read = found.read.get(target, 0)
    return TableReport(target, pipeline, verdict, total, expected, read, why, holds, says)


def _why(
    target: str, scanned: Scanned, recorded: Snapshot, says: SourceSays | None
) -> Iterator[str]:
    found = scanned.found
    if says is not None:
        yield from says.why
    elif not found.ends:
        yield NOTHING_TELLS
    waits = waits_for(target, scanned, recorded)
    if waits:
        where = some(waits)
        yield f"no change of after the range came in {where}: an idle source needs a heartbeat"
    for each in found.untold:
        matters = bool(found.ends) if says is None else each.of_records
        if matters and (not each.targets or target in each.targets):
            yield untold_line(each)


def untold_line(each: Untold) -> str:
    """A reason, how often, and its first place."""
    named = f" ({each.transaction})" if each.transaction else ""
    often = f", {counted(each.count, 'time')}, first" if each.count > 1 else ""
    return f"{each.why}{often} at {each.source}:{each.offset}{named}"


def minute_text(minute: int) -> str:
    """A minute since 1970, for people."""
    return time_text(minute * 60_000)[:16] + "Z"


def lacking_line(each: LackingTransaction) -> str:
    """A transaction that lacks changes in the log."""
    return (
        f"transaction {each.transaction}, END at {each.source}:{each.end}, "
        f"{minute_text(each.minute)}: {each.table} has {each.found} of "
        f"{counted(each.expected, 'event')}"
    )


def held_line(each: HeldDifference) -> str:
    """A minute of which a target holds more or less."""
    return (
        f"{minute_text(each.minute)}: the target holds {counted(each.held, 'change')} of "
        f"{each.in_log} in {each.source}"
    )


def why_not(report: TableReport, scanned: Scanned) -> str | None:
    """Why a table's counts do not agree, in a line; None: they do."""
    if report.verdict == "agrees":
        return None
    lacking = (d for d in scanned.found.differences if report.target in d.targets)
    lines = [lacking_line(each) for each in lacking]
    if not lines and (number := scanned.found.lacking.get(report.target)):
        lines = [f"events are missing of {counted(number, 'transaction')}"]
    lines += said_lines(report)
    if report.holds is not None:
        lines += [*map(held_line, report.holds.differences), *report.holds.open]
    return next(iter((*lines, *report.why)), None)


def said_lines(report: TableReport) -> list[str]:
    """The minutes in which the log has less than is said beside it."""
    if report.says is None:
        return []
    lines = [lacking_minute_line(each, report.says.by) for each in report.says.lacking]
    more = report.says.more
    return lines + ([f"and {counted(more, 'other minute')}"] if more else [])


def status_of(tables: Collection[TableReport]) -> int:
    """1: one differs; 2: of one it can't be told, or there is none; 0: all agree."""
    verdicts = {each.verdict for each in tables}
    if "differs" in verdicts:
        return 1
    return 0 if verdicts == {"agrees"} else 2


def document(
    minutes: range, scans: Mapping[str, Scanned], tables: Collection[TableReport]
) -> dict[str, Any]:
    """As JSON. Minutes are numbers since 1970."""
    asked = {each.target for each in tables}
    return {
        "from_ms": minutes.start * 60_000,
        "to_ms": minutes.stop * 60_000,
        "tables": {each.target: _of_table(each) for each in tables},
        "counts": [
            _of_cell(key, scan)
            for scan in scans.values()
            for key in sorted(scan.found.cells)
            if key.target in asked
        ],
        "transactions": [
            _of_difference(d) for scan in scans.values() for d in scan.found.differences
        ],
        "transactions_left_out": sum(scan.found.more for scan in scans.values()),
        "begun_only": sum(scan.found.begun_only for scan in scans.values()),
        "repeated": {
            str(source): number
            for scan in scans.values()
            for source, number in sorted(scan.found.repeated.items())
        },
        "read": {
            str(each.source): {"from": each.begin, "to": each.read_to}
            for scan in scans.values()
            for each in scan.ranges
        },
    }


def _of_table(each: TableReport) -> dict[str, Any]:
    return {
        "pipeline": each.pipeline,
        "verdict": each.verdict,
        "inserted": each.found.inserted,
        "updated": each.found.updated,
        "deleted": each.found.deleted,
        "expected": each.expected,
        "said_by": each.said_by,
        "read_from_table": each.read,
        "why": list(each.why),
        "lacking_minutes": [] if each.says is None else [*map(_of_minute, each.says.lacking)],
    } | ({} if each.holds is None else {"target": _of_target(each.holds)})


def _of_minute(each: LackingMinute) -> dict[str, Any]:
    return {
        "source_table": each.table,
        "minute": each.minute,
        "operation": each.operation,
        "expected": each.expected,
        "found": each.found,
    }


def _of_target(holds: TargetHolds) -> dict[str, Any]:
    return {
        "held": holds.held,
        "decided_letters": holds.letters,
        "open_letters": list(holds.open),
        "differences": [
            {"source": str(d.source), "minute": d.minute, "in_log": d.in_log, "held": d.held}
            for d in holds.differences
        ],
    }


def _of_cell(key: CellKey, scan: Scanned) -> dict[str, Any]:
    cell = scan.found.cells[key]
    return {
        "table": key.target,
        "topic": key.topic,
        "partition": key.partition,
        "minute": key.minute,
        "inserted": cell.found.inserted,
        "updated": cell.found.updated,
        "deleted": cell.found.deleted,
        "expected": cell.expected,
    }


def _of_difference(each: LackingTransaction) -> dict[str, Any]:
    return {
        "transaction": each.transaction,
        "end": f"{each.source}:{each.end}",
        "minute": each.minute,
        "source_table": each.table,
        "tables": list(each.targets),
        "expected": each.expected,
        "found": each.found,
    }

"""The rows of ``binlogd tables list``: open targets, recorded ones, paused ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from daemon.admin.status import document as doc
from daemon.admin.status.words import duration
from offsets.snapshot import Snapshot, TargetMark

Row = dict[str, Any]


def with_recorded(name: str, open_: list[Row] | None, snapshot: Snapshot | None) -> list[Row]:
    """A pipeline's targets: the open ones, and those without a change since the start."""
    recorded = [] if snapshot is None else list(recorded_rows(name, snapshot))
    if open_ is None:
        return recorded
    filled = {} if snapshot is None else {r.into: t for t, r in snapshot.rebuilds.items()}
    rows = {row["target"]: row for row in open_}
    for target in rows.keys() & filled.keys():
        rows[target] |= {"phase": f"rebuilding {filled[target]}"}
    for row in recorded:
        # Targets in quarantine are open from the start, if a route leads to them.
        kept = row["phase"] in ("quarantined", "away")
        gone = {"phase": f"{row['phase']}, no route"} if kept else {}
        rows.setdefault(row["target"], row | gone)
    return [rows[target] for target in sorted(rows)]


def with_paused(rows: list[Row], paused: Mapping[str, str | None]) -> list[Row]:
    """Paused targets as such, also those that no change has opened yet. ``paused``: the pipeline
    of each, None where no route leads to it."""
    for row in rows:
        if row["target"] in paused and row["phase"] == "recorded":
            row["phase"] = "paused"
    return rows + [
        {
            "pipeline": paused[target],
            "target": target,
            "phase": "paused",
            "high_water_marks": {},
            "spill": None,
            "last_error": None,
            "rows_may_differ": None,
        }
        for target in sorted(paused.keys() - {row["target"] for row in rows})
    ]


def recorded_rows(pipeline: str, snapshot: Snapshot) -> Iterable[Row]:
    """The targets in an offset file."""
    emptied = {name for name, mark in snapshot.targets.items() if mark == TargetMark(None, {})}
    for target in sorted({*snapshot.targets, *snapshot.spills} - emptied):
        mark, spill = snapshot.targets.get(target), snapshot.spills.get(target)
        lanes = {} if spill is None else {str(s): list(ends) for s, ends in spill.lanes.items()}
        yield {
            "pipeline": pipeline,
            "target": target,
            "phase": _recorded_phase(snapshot, target),
            "high_water_marks": {} if mark is None else {str(s): h for s, h in mark.hwms.items()},
            "spill": None if spill is None else {"bytes": spill.bytes, "lanes": lanes},
            "last_error": None,
            "rows_may_differ": None if mark is None else mark.rows_may_differ,
        }


def _recorded_phase(snapshot: Snapshot, target: str) -> str:
    if target in snapshot.rebuilding:
        return "rebuilding"
    spill = snapshot.spills.get(target)
    if spill is None:
        return "recorded"
    return "away" if spill.away else "quarantined"


def running_rows(status: doc.Status) -> Iterable[Row]:
    for pipeline in status["pipelines"]:
        for target in pipeline["targets"]:
            quarantine = target["quarantine"]
            error = target["last_error"]
            phase = target["phase"]
            if quarantine is not None and quarantine["releasing"]:
                phase = "releasing"
            away = target["away"]
            if away is not None:
                phase = "catching up" if away["catching_up"] else _away(away)
            spill = quarantine or away
            if target["target"] in status["paused_targets"]:
                phase = "paused"
            elif pipeline["paused_by_a_person"] is not None:
                phase += ", paused"
            yield {
                "pipeline": pipeline["pipeline"],
                "target": target["target"],
                "phase": phase,
                "high_water_marks": target["high_water_marks"],
                "spill": None if spill is None else {
                    key: spill[key] for key in ("bytes", "messages", "lanes", "full")
                },
                "last_error": None if error is None else error["reason"],
                "rows_may_differ": target["rows_may_differ"],
            }  # fmt: skip


def left_out_rows(status: doc.Status) -> Iterable[Row]:
    """The tables that have no target, because of their names."""
    for pipeline in status["pipelines"]:
        for table, why in pipeline["left_out"].items():
            yield {
                "pipeline": pipeline["pipeline"],
                "target": table,
                "phase": "left out",
                "high_water_marks": {},
                "spill": None,
                "last_error": why,
                "rows_may_differ": None,
            }


def _away(away: doc.Away) -> str:
    seconds = away["seconds"]
    return "away" if seconds is None else f"away for {duration(seconds)}"

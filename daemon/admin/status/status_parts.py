"""Builds the status document's targets, with their lag and errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from actors.contract.figures import (
    CommitterFigures,
    DeadLetterFigures,
    ErrorFigures,
    LaneFigures,
    PartitionFigures,
    QuarantineFigures,
    TargetFigures,
    WriteFigures,
)
from daemon.admin.status import document as doc
from offsets.position import TopicPartition
from sources.base.log_figures import LogFigures

# Builds the status document's partitions, and the lag of the whole pipeline. Pure.


def partitions_of(
    log_ends: LogFigures, committer: CommitterFigures, now_ms: int
) -> list[doc.Partition]:
    """The partitions that are read here, each with its lag."""
    return [
        _partition(source, figures, log_ends, now_ms)
        for source, figures in sorted(committer.partitions.items())
    ]


def lag_of(partitions: Sequence[doc.Partition], reading: bool) -> doc.Lag:
    """The pipeline's lag: unknown if one partition's is. Pending changes have an age nevertheless.
    ``reading``: without partitions nothing is behind, because other members have them all."""
    reads = bool(partitions) or reading
    known = [p["lag_messages"] for p in partitions if p["lag_messages"] is not None]
    ages = [p["lag_seconds"] for p in partitions if p["lag_seconds"] is not None]
    whole = reads and len(known) == len(partitions)
    oldest = max(ages, default=0.0)
    sure = reads and len(ages) == len(partitions)
    return {
        "lag_messages": sum(known) if whole else None,
        # An unknown one may be older, but can't make this one younger.
        "lag_seconds": oldest if sure or oldest else None,
    }


def freshness_of(partitions: Sequence[doc.Partition]) -> float | None:
    """The pipeline's: that of its oldest partition."""
    applied = [p["freshness_seconds"] for p in partitions]
    return max((seconds for seconds in applied if seconds is not None), default=None)


def _partition(
    source: TopicPartition, figures: PartitionFigures, log: LogFigures, now_ms: int
) -> doc.Partition:
    reported_end = log.ends.get(source)
    # The consumer may have read on since the end was reported.
    end = None if reported_end is None else max(reported_end, figures.position)
    lag = None if end is None else end - figures.frontier
    transaction = log.open.get(source)
    lag_s = _lag_seconds(figures, lag, now_ms)
    if lag and lag_s is None and transaction is not None:
        lag_s = round(transaction.seconds, 3)  # at least: since it was seen to be open
    kept_s = log.kept.seconds.get(source.topic)
    return {
        "source": str(source),
        "log_end": end,
        "position": figures.position,
        "frontier": figures.frontier,
        "confirmed": figures.confirmed,
        "lag_messages": lag,
        "lag_seconds": lag_s,
        "freshness_seconds": age(figures.applied_ms, now_ms),
        "unapplied_messages": figures.position - figures.frontier,
        "held_by": _holder(figures),
        # Records that the broker does not show yet: they are behind a transaction that is open.
        "open_transaction": None
        if transaction is None or end is None
        else {
            "offset": transaction.offset,
            "messages": end - transaction.offset,
            "seconds": round(transaction.seconds, 3),
        },
        "log_start": log.kept.starts.get(source),
        "retention_seconds": kept_s,
        # By the log's times: the broker removes whole segments, so it removes later than that.
        "retention_left_seconds": round(kept_s - lag_s, 3) if kept_s and lag_s else None,
    }


def _lag_seconds(figures: PartitionFigures, lag: int | None, now_ms: int) -> float | None:
    if lag == 0:
        return 0.0
    if figures.lanes:
        oldest = figures.lanes[0].time_ms
        # What was not fetched yet has no time: it is newer than the newest applied change.
        return age(figures.applied_ms if oldest is None else oldest, now_ms)
    return None if lag is None else age(figures.applied_ms, now_ms)


def _holder(figures: PartitionFigures) -> doc.Holder | None:
    """The lane that holds the frontier, and how far the frontier would move without it."""
    if not figures.lanes:
        return None
    first, *others = figures.lanes
    beyond = others[0].first if others else figures.position
    return {"target": first.target, "offset": first.first, "messages": beyond - first.first}


def age(time_ms: int | None, now_ms: int) -> float | None:
    """Seconds since; clocks of two machines may differ, so never below zero."""
    return None if time_ms is None else round(max(0, now_ms - time_ms) / 1000, 3)


def _summed(figures: TargetFigures) -> doc.Summed:
    return {
        "messages_replayed": figures.messages_replayed,
        "rows_read": figures.rows_read,
        "rows_written": figures.rows_written,
        "rows_stored": figures.rows_stored,
        "values_nulled": figures.values_nulled,
        "buffered_messages": figures.buffered_messages,
        "buffered_bytes": figures.buffered_bytes,
        "staged_files": figures.staged_files,
        "staged_bytes": figures.staged_bytes,
    }


def summed(targets: Sequence[doc.Target]) -> doc.Summed:
    """The members that a pipeline shows as the sum of its targets'."""
    totals = {name: sum(target[name] for target in targets) for name in doc.Summed.__annotations__}  # type: ignore[literal-required]  # these very names
    return cast(doc.Summed, totals)


def targets_of(
    figures: Iterable[TargetFigures],
    committer: CommitterFigures,
    ends: Mapping[str, int | None],
    doubted: Mapping[str, str],
    now_ms: int,
    reading: bool,
) -> list[doc.Target]:
    """The open targets. ``doubted``: see ``rows_may_differ``; ``reading``: see ``lag_of``."""
    lanes = _lanes(committer)
    return [
        _target(
            each,
            lanes.get(each.target, []),
            committer,
            ends,
            doubted.get(each.target),
            now_ms,
            reading,
        )
        for each in figures
    ]


def rows_may_differ(
    committer: CommitterFigures, targets: Iterable[TargetFigures]
) -> dict[str, str]:
    """Why stored rows may differ, by target: as recorded, or as an open target shows it."""
    found = dict(committer.rows_may_differ)
    for target in targets:
        if target.rows_may_differ is not None:
            found[target.target] = target.rows_may_differ
        elif target.hwms and target.quarantine is None and target.away is None:  # it was checked
            found.pop(target.target, None)
    return dict(sorted(found.items()))


class _Pending(NamedTuple):
    """A lane with pending changes; ``place`` 0 holds its partition's frontier."""

    source: str
    place: int
    lane: LaneFigures


def _lanes(committer: CommitterFigures) -> dict[str, list[_Pending]]:
    """The pending lanes by target, built in one pass because there may be thousands."""
    found: dict[str, list[_Pending]] = {}
    for source, partition in committer.partitions.items():
        for place, lane in enumerate(partition.lanes):
            found.setdefault(lane.target, []).append(_Pending(str(source), place, lane))
    return found


def _target(
    figures: TargetFigures,
    pending: Sequence[_Pending],
    committer: CommitterFigures,
    ends: Mapping[str, int | None],
    doubt: str | None,
    now_ms: int,
    reading: bool,
) -> doc.Target:
    """Nothing pending is no lag, unless the log's end is unknown: who knows what was not read."""
    behind = [(ends[source], lane.first) for source, _, lane in pending]
    known = None not in _ends_of(figures, ends) and all(end is not None for end, _ in behind)
    sure = known and (reading or bool(ends))
    lag = sum(end - first for end, first in behind if end is not None) if sure else None
    oldest = min((p.lane.time_ms for p in pending if p.lane.time_ms is not None), default=None)
    applied = committer.applied_ms.get(figures.target)
    return {
        "target": figures.target,
        "phase": figures.phase,
        "lag_messages": lag,
        "lag_seconds": age(oldest, now_ms) if pending else 0.0 if sure else None,
        "freshness_seconds": age(applied, now_ms),
        "holds_frontier_of": [source for source, place, _ in pending if place == 0],
        "waiting_seconds": figures.waiting_s,
        "write": _write(figures.write),
        "last_error": _error(figures.error),
        "high_water_marks": {str(s): hwm for s, hwm in sorted(figures.hwms.items())},
        "quarantine": _quarantine(figures.quarantine),
        "away": _away(figures.away),
        "rows_may_differ": doubt,
        **_summed(figures),
        "messages_read": figures.messages_read,
        "messages_dropped": figures.messages_dropped,
        "dead_letters": figures.dead_letters,
        "ddl_not_understood": figures.ddl_not_understood,
        "writes": figures.writes,
        "write_seconds": figures.write_seconds,
    }


def _ends_of(figures: TargetFigures, ends: Mapping[str, int | None]) -> list[int | None]:
    """The ends of the partitions that its rows come from; of one without marks, of all."""
    mine = [ends[str(source)] for source in figures.hwms if str(source) in ends]
    return mine or list(ends.values())


def _write(figures: WriteFigures | None) -> doc.Write | None:
    if figures is None:
        return None
    return {
        "rows": figures.rows,
        "attempt": figures.attempt,
        "age_seconds": round(figures.age_s, 3),
        "retry_in_seconds": figures.retry_in_s,
    }


def _kept(figures: QuarantineFigures) -> doc.Kept:
    return {
        "reason": figures.reason,
        "messages": figures.messages,
        "bytes": figures.bytes,
        "full": figures.full,
        "lanes": {str(s): list(figures.lanes[s]) for s in sorted(figures.lanes)},
    }


def _quarantine(figures: QuarantineFigures | None) -> doc.Quarantined | None:
    return None if figures is None else {**_kept(figures), "releasing": figures.releasing}


def _away(figures: QuarantineFigures | None) -> doc.Away | None:
    if figures is None:
        return None
    catching_up = figures.releasing and figures.answered
    return {**_kept(figures), "seconds": figures.age_s, "catching_up": catching_up}


def _error(error: ErrorFigures | None) -> doc.Error | None:
    if error is None:
        return None
    return {
        "reason": error.reason,
        "seconds_ago": None if error.age_s is None else round(error.age_s, 3),
        "lasting": error.lasting,
    }


def last_error(targets: Iterable[doc.Target]) -> doc.NamedError | None:
    """The newest of the targets' last errors. A lasting one goes before one that is over."""
    errors: list[doc.NamedError] = [
        {**error, "target": t["target"]} for t in targets if (error := t["last_error"])
    ]
    newest = (error for error in errors if error["seconds_ago"] is not None)
    found = min(newest, key=lambda e: (not e["lasting"], e["seconds_ago"]), default=None)
    # What has lasted since before this run goes before what is over.
    lasting = found is not None and found["lasting"]
    return found if lasting else next((e for e in errors if e["lasting"]), found)


def letters_of(figures: DeadLetterFigures) -> doc.DeadLetters:
    """A pipeline's dead letters."""
    return {
        "stored": figures.stored,
        "open": figures.open,
        "waiting": figures.waiting,
        "error": figures.error,
    }

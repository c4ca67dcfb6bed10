"""Builds the status document's partitions, and the lag of the whole pipeline. Pure.

An unknown value is None: a lag of 0 is shown only if the log's end was reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.contract.figures import CommitterFigures, PartitionFigures
from daemon.kafka.log_ends import LogEndFigures
from offsets.position import TopicPartition


def partitions_of(
    log_ends: LogEndFigures, committer: CommitterFigures, now_ms: int
) -> list[dict[str, Any]]:
    """The partitions that are read here, each with its lag."""
    return [
        _partition(source, figures, log_ends, now_ms)
        for source, figures in sorted(committer.partitions.items())
    ]


def lag_of(partitions: Sequence[Mapping[str, Any]], reading: bool) -> dict[str, Any]:
    """The pipeline's lag: unknown if one partition's is. Pending changes have an age all the same.
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


def _partition(
    source: TopicPartition, figures: PartitionFigures, log: LogEndFigures, now_ms: int
) -> dict[str, Any]:
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


def _holder(figures: PartitionFigures) -> dict[str, Any] | None:
    """The lane that holds the frontier, and how far the frontier would move without it."""
    if not figures.lanes:
        return None
    first, *others = figures.lanes
    beyond = others[0].first if others else figures.position
    return {"target": first.target, "offset": first.first, "messages": beyond - first.first}


def age(time_ms: int | None, now_ms: int) -> float | None:
    """Seconds since; clocks of two machines may differ, so never below zero."""
    return None if time_ms is None else round(max(0, now_ms - time_ms) / 1000, 3)

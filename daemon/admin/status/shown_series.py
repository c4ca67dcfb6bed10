"""Chooses the targets and partitions that have series of their own in the metrics. Pure.

A pipeline may have thousands of either. With 3,000 targets and 18,000 partitions a scrape is 16 MB
and takes the process 1.8 s, in which nothing else runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from daemon.admin.status import document as doc

T = TypeVar("T")


def shown_targets(p: doc.Pipeline, most: int) -> list[doc.Target]:
    """Those that alerts are for come first, then those furthest behind; in the order of names."""
    return _first(p["targets"], most, _target_rank, lambda each: each["target"])


def shown_partitions(p: doc.Pipeline, most: int) -> list[doc.Partition]:
    """Those whose records the broker removes soonest come first, then those furthest behind."""
    return _first(p["partitions"], most, _partition_rank, lambda each: each["source"])


def shown_names(names: Sequence[str], most: int) -> list[str]:
    """Some of many names that are all ill."""
    return sorted(names)[:most]


def not_shown(
    items: Sequence[tuple[dict[str, str], Mapping[str, Any]]], most: int
) -> Iterator[Metric]:
    """How many have no series of their own, by pipeline."""
    for what in ("targets", "partitions"):
        family = GaugeMetricFamily(
            f"binlogd_pipeline_{what}_not_shown",
            f"Its {what} without series of their own (metrics.most)",
            labels=("pipeline",),
        )
        for names, item in items:
            family.add_metric([names["pipeline"]], float(max(0, len(item[what]) - most)))
        yield family


def _first(
    items: Sequence[T], most: int, rank: Callable[[T], tuple[Any, ...]], name: Callable[[T], str]
) -> list[T]:
    if len(items) <= most:
        return list(items)
    chosen = sorted(items, key=lambda item: (*rank(item), name(item)))[:most]
    return sorted(chosen, key=name)


def _target_rank(each: doc.Target) -> tuple[bool, float, int]:
    error = each["last_error"]
    ill = (
        each["quarantine"] is not None
        or each["away"] is not None
        or each["rows_may_differ"] is not None
        or bool(error and error["lasting"])
    )
    return not ill, -(each["lag_seconds"] or 0.0), -(each["lag_messages"] or 0)


def _partition_rank(each: doc.Partition) -> tuple[float, int]:
    left = each["retention_left_seconds"]
    return float("inf") if left is None else left, -(each["lag_messages"] or 0)

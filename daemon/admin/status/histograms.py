"""Histograms of a pipeline's writes, in the document and for Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from actors.contract.figures import CommitterFigures
from actors.contract.histogram import HistogramFigures
from daemon.admin.status import document as doc


def histograms_of(committer: CommitterFigures) -> doc.Histograms:
    """As members of a pipeline."""
    return {
        "write_seconds_histogram": _member(committer.write_s),
        "write_freshness_seconds_histogram": _member(committer.write_freshness_s),
    }


def _member(figures: HistogramFigures) -> doc.Histogram:
    bounds, counts = list(figures.bounds), list(figures.counts)
    return {"bounds": bounds, "counts": counts, "sum": round(figures.sum, 3)}


def histogram_metrics(
    items: Sequence[tuple[dict[str, str], Mapping[str, Any]]],
) -> Iterator[Metric]:
    """Of each pipeline, not of each target: 14 series each. ``items``: labels and pipelines."""
    for member, text in (
        ("write_seconds", "What the sink took for each write"),
        ("write_freshness_seconds", "At each write's end, the age of the newest message in it"),
    ):
        family = HistogramMetricFamily(f"binlogd_pipeline_{member}", text, labels=("pipeline",))
        for names, item in items:
            found = item[f"{member}_histogram"]
            bounds = [*map(str, found["bounds"]), "+Inf"]
            buckets = zip(bounds, accumulate(found["counts"]), strict=True)
            family.add_metric([names["pipeline"]], list(buckets), found["sum"])
        yield family

"""Shows pipelines' cuts as Prometheus metrics; `docs/watch.md` names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from daemon.admin.status import document as doc


def cut_metrics(pipelines: Iterable[doc.Pipeline]) -> Iterator[Metric]:
    """Of pipelines that make cuts: how old the last one is, what it is without, whether the next
    one fails."""
    labels = ("pipeline",)
    age = GaugeMetricFamily("binlogd_cut_age_seconds", "Since the last cut was made", labels=labels)
    without = GaugeMetricFamily(
        "binlogd_cut_tables_left_out", "Tables that the last cut is without", labels=labels
    )
    failing = GaugeMetricFamily("binlogd_cut_failing", "1 while no cut is made", labels=labels)
    for p in pipelines:
        if (cuts := p["cuts"]) is None:
            continue
        failing.add_metric([p["pipeline"]], float(cuts["error"] is not None))
        if cuts["seconds_ago"] is not None:
            age.add_metric([p["pipeline"]], cuts["seconds_ago"])
            without.add_metric([p["pipeline"]], float(len(cuts["left_out"])))
    yield from (age, without, failing)

"""Shows the document's collectors as Prometheus metrics. Names and meanings are in
``docs/watch.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

_GAUGES = (
    ("beyond_bytes", "Bytes that the source keeps behind its position"),
    ("beyond_seconds", "Age of what it reads next"),
    ("purge_seconds", "Until the source may remove its position by age; absent while it need not"),
    ("room_bytes", "Bytes of log until the source removes its position; absent without a bound"),
)


def collector_metrics(collectors: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    """All collectors. Unknown values are left out."""
    every = list(collectors)
    for member, text in _GAUGES:
        gauge = GaugeMetricFamily(f"binlogd_collector_{member}", text, labels=("collector",))
        for one in every:
            if one[member] is not None:
                gauge.add_metric([one["collector"]], float(one[member]))
        yield gauge
    state = GaugeMetricFamily(
        "binlogd_collector_state", "1 for the state it is in", labels=("collector", "state")
    )
    lasts = GaugeMetricFamily(
        "binlogd_collector_state_seconds", "For how long", labels=("collector",)
    )
    restarts = CounterMetricFamily(
        "binlogd_collector_restarts", "Of its task, after it had failed", labels=("collector",)
    )
    for one in every:
        state.add_metric([one["collector"], one["state"]], 1.0)
        lasts.add_metric([one["collector"]], float(one["seconds"]))
        restarts.add_metric([one["collector"]], float(one["restarts"]))
    yield from (state, lasts, restarts)

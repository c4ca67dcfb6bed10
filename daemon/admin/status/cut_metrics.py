"""Shows pipelines' cuts, and gates, as Prometheus metrics; `docs/watch.md` names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

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


def gate_metrics(gates: Iterable[doc.GateShown], up_s: float) -> Iterator[Metric]:
    """Of configured gates: through when they are closed, whether one is shut that is due, how long
    nobody has looked, who is not told. ``up_s``: how long this process runs; of a gate that nobody
    has ever looked at nothing else is known."""
    unseen, through, shut, reopened = (
        GaugeMetricFamily(f"binlogd_gate_{name}", text, labels=("gate",))
        for name, text in (
            ("unseen_seconds", "Since somebody looked at the gate"),
            ("closed_through_timestamp_seconds", "Through when its partitions are closed"),
            ("shut", "1 while a partition that has ended is not complete"),
            ("reopened", "Partitions that were reopened and have not closed again"),
        )
    )
    waiting, failing = (
        GaugeMetricFamily(f"binlogd_gate_{name}", text, labels=("gate", "way"))
        for name, text in (
            ("undelivered", "Notifications that a way has not taken"),
            ("way_failing_seconds", "Since a way takes none, 0 while it does"),
        )
    )
    for gate in gates:
        name, looked_s, last = gate["gate"], gate["looked_seconds"], gate["last"]
        unseen.add_metric([name], up_s if looked_s is None else looked_s)
        shut.add_metric([name], float(bool(gate["shut"])))
        reopened.add_metric([name], float(len(gate["reopened"])))
        if last is not None:
            through.add_metric([name], datetime.fromisoformat(last["through"]).timestamp())
        for way, one in gate["undelivered"].items():
            waiting.add_metric([name, way], float(one["notifications"]))
            failing.add_metric([name, way], one["seconds"] or 0.0)
    yield from (unseen, through, shut, reopened, waiting, failing)

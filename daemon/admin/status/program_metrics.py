"""Shows the programs beside the daemon, and its state directory, as Prometheus metrics;
`docs/watch.md` names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from daemon.admin.status import document as doc


def process_metrics(status: doc.Status) -> Iterator[Metric]:
    """All of them."""
    yield from _programs(status["programs"])
    yield from _session(status["spark"])
    yield from _state(status.get("state_dir"))


def _programs(programs: Sequence[doc.Program]) -> Iterator[Metric]:
    """Whether each is up, for how long it has not been, how often it was started."""
    labels = ("program",)
    up = GaugeMetricFamily("binlogd_program_up", "1 while it does its work", labels=labels)
    down = GaugeMetricFamily(
        "binlogd_program_down_seconds", "Since it did its work; 0 while it does", labels=labels
    )
    starts = CounterMetricFamily("binlogd_program_starts", "Launches", labels=labels)
    for one in programs:
        is_up = one["state"] == "up"
        up.add_metric([one["program"]], float(is_up))
        down.add_metric([one["program"]], 0.0 if is_up else one["seconds"])
        starts.add_metric([one["program"]], one["starts"])
    yield from (up, down, starts)


def _session(session: doc.Session | None) -> Iterator[Metric]:
    """Of Spark's process; none where no sink needs one."""
    if session is None:
        return
    up = session["pid"] is not None
    figures: tuple[tuple[str, str, float | None], ...] = (
        ("spark_up", "1 while a Spark session lives", up),
        ("spark_session_age_seconds", "Of the session that lives", session["age_seconds"]),
        ("spark_down_seconds", "Since the last session ended; 0 while one lives",
         session["down_seconds"] or 0.0),
    )  # fmt: skip
    for name, text, figure in figures:
        if figure is not None:
            yield GaugeMetricFamily(f"binlogd_{name}", text, value=float(figure))
    rebuilt = "Spark sessions started after the first"
    yield CounterMetricFamily("binlogd_spark_rebuilt", rebuilt, value=session["rebuilt"])


def _state(state: doc.StateFigures | None) -> Iterator[Metric]:
    """What the state directory holds and may hold; none before it is measured."""
    if state is None:
        return
    held = GaugeMetricFamily("binlogd_state_bytes", "In the state directory", labels=("part",))
    for part, count in state["parts"].items():
        held.add_metric([part], count)
    yield held
    text = "What the state directory may hold: state_max_bytes, or what its disk has room for"
    yield GaugeMetricFamily("binlogd_state_limit_bytes", text, value=state["limit_bytes"])

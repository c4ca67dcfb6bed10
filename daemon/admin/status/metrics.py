"""Shows the status document as Prometheus metrics. Names and meanings are in
``docs/watch.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from changes.model.printable import distinct
from daemon.admin.status import document as doc
from daemon.admin.status.collector_metrics import collector_metrics
from daemon.admin.status.cut_metrics import cut_metrics, gate_metrics
from daemon.admin.status.histograms import histogram_metrics
from daemon.admin.status.job_metrics import job_metrics
from daemon.admin.status.program_metrics import process_metrics
from daemon.admin.status.shown_series import not_shown, shown_names, shown_partitions, shown_targets

Status = Callable[[], doc.Status]
"""Returns the present status document."""


MOST = 1000
"""Targets and partitions of a pipeline that have series of their own: 27,000 lines, 0.4 s."""


class _Spec(NamedTuple):
    """One metric: its name without ``binlogd_``, the document's member, and its meaning."""

    name: str
    member: str
    text: str
    counter: bool = False


_PIPELINE = (
    _Spec("pipeline_lag_messages", "lag_messages", "Messages between frontier and log end"),
    _Spec("pipeline_lag_seconds", "lag_seconds", "Age of the oldest message not applied"),
    _Spec("pipeline_log_ends_unknown_seconds", "log_ends_unknown_seconds", "Lag is unknown since"),
    _Spec("pipeline_freshness_seconds", "freshness_seconds", "Age of the newest message applied"),
    _Spec("pipeline_assigned", "assigned", "1 when the group has given it its partitions"),
    _Spec("pipeline_held", "held", "1 while the memory or disk budget is used up"),
    _Spec("pipeline_paused", "paused", "1 while reading is paused"),
    _Spec("broker_unreachable_seconds", "broker_unreachable_seconds", "For how long"),
    _Spec("registry_away_seconds", "registry_away_seconds", "Absent while it answers"),
    _Spec("messages_awaiting_schemas", "messages_awaiting_schemas", "Held until these are kept"),
    _Spec("messages_read", "messages_read", "Messages read", counter=True),
    _Spec("messages_dropped", "messages_dropped", "Messages that no target takes", counter=True),
    _Spec("messages_sent_again", "messages_sent_again", "Repeated by the producer: dropped", True),
    _Spec("messages_passed_over", "messages_passed_over", "Of no table for sure", True),
    _Spec("messages_left_out", "messages_left_out", "Of tables that no lake can name so", True),
    _Spec("tables_left_out", "tables_left_out", "Tables that no lake can name so"),
    _Spec("topics_gone", "topics_gone_count", "Of patterns, and do not exist any more"),
    _Spec("stale_acknowledgements", "stale_acknowledgements", "Of an earlier assignment", True),
    _Spec("parked_bytes", "parked_bytes", "Bytes that a full mailbox refused"),
)  # fmt: skip
_PARTITION = (
    _Spec("partition_log_end_offset", "log_end", "The log's end"),
    _Spec("partition_position_offset", "position", "What is read next"),
    _Spec("partition_frontier_offset", "frontier", "Everything below is applied"),
    _Spec("partition_confirmed_offset", "confirmed", "The broker's last known commit"),
    _Spec("partition_lag_messages", "lag_messages", "Messages between frontier and log end"),
    _Spec("partition_unapplied_messages", "unapplied_messages", "Read and not applied yet"),
    _Spec("partition_log_start_offset", "log_start", "The log's first offset"),
    _Spec("partition_retention_seconds", "retention_seconds", "How long the broker keeps a record"),
    _Spec(
        "partition_retention_left_seconds",
        "retention_left_seconds",
        "Until the broker may remove the oldest record that is not applied; absent without lag",
    ),
)
_TARGET = (
    _Spec("target_lag_messages", "lag_messages", "From its oldest pending one to the log end"),
    _Spec("target_lag_seconds", "lag_seconds", "Age of its oldest pending message"),
    _Spec("target_freshness_seconds", "freshness_seconds", "Age of the newest message it contains"),
    _Spec("target_buffered_messages", "buffered_messages", "Messages that wait undecoded"),
    _Spec("target_buffered_bytes", "buffered_bytes", "Their bytes"),
    _Spec("target_staged_files", "staged_files", "Staged files behind the write"),
    _Spec("target_staged_bytes", "staged_bytes", "Their bytes"),
    _Spec("target_messages_read", "messages_read", "Messages of this target", True),
    _Spec("target_messages_dropped", "messages_dropped", "Came after it had stopped", True),
    _Spec("target_messages_replayed", "messages_replayed", "Dropped, it had them already", True),
    _Spec("target_rows_read", "rows_read", "Row changes decoded", True),
    _Spec("target_rows_written", "rows_written", "Row changes published", True),
    _Spec("target_rows_stored", "rows_stored", "Rows after folding, published", True),
    _Spec("target_writes", "writes", "Published writes", True),
    _Spec("target_write_seconds", "write_seconds", "What the sink took for them", True),
    _Spec("target_dead_letters", "dead_letters", "Messages stored as dead letters", True),
    _Spec("target_values_nulled", "values_nulled", "Zero dates stored as null", True),
    _Spec("target_ddl_not_understood", "ddl_not_understood", "Statements not understood", True),
)  # fmt: skip


def _whole(metric: Metric) -> Metric:
    """With labels that can be written and shown; two that differ stay two."""
    for at, sample in enumerate(metric.samples):
        if not all(label.isprintable() and "\\" not in label for label in sample.labels.values()):
            labels = {name: distinct(value) for name, value in sample.labels.items()}
            metric.samples[at] = sample._replace(labels=labels)
    return metric


class StatusCollector(Collector):
    """Makes one status document for each scrape. Called on the scrape's thread."""

    def __init__(self, status: Status, most: int = MOST) -> None:
        """``most``: how many targets and partitions of a pipeline have series of their own."""
        self._status = status
        self._most = most

    def collect(self) -> Iterable[Metric]:
        """All metrics at this moment. Unknown values are left out."""
        for metric in self._made():
            yield _whole(metric)

    def _made(self) -> Iterable[Metric]:
        status, most = self._status(), self._most
        yield _build(status)
        yield from _process(status)
        pipelines = [({"pipeline": p["pipeline"]}, p) for p in status["pipelines"]]
        partitions = [
            ({**labels, "partition": part["source"]}, part)
            for labels, p in pipelines
            for part in shown_partitions(p, most)
        ]
        targets = [
            ({**labels, "target": target["target"]}, target)
            for labels, p in pipelines
            for target in shown_targets(p, most)
        ]
        yield from _families(_PIPELINE, ("pipeline",), pipelines)
        yield from _families(_PARTITION, ("pipeline", "partition"), partitions)
        yield from _families(_TARGET, ("pipeline", "target"), targets)
        yield from histogram_metrics(pipelines)
        yield from not_shown(pipelines, most)
        yield from _lives(pipelines)
        yield _doubted(pipelines, most)
        yield _pauses(pipelines)
        yield _paused_targets(status["paused_targets"], most)
        yield from _writes(targets)
        yield from cut_metrics(status["pipelines"])
        yield from gate_metrics(status["gates"], status["uptime_seconds"])
        yield from job_metrics(status["jobs"])
        yield from collector_metrics(status["collectors"])
        yield _expiries(status["credentials"])

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not query the actors."""
        return []


def _process(status: doc.Status) -> Iterator[Metric]:
    for name, text, value in (
        ("ready", "1 when all pipelines are assigned and the sinks are open", status["ready"]),
        ("healthy", "1 when every actor makes progress", status["healthy"]),
        ("uptime_seconds", "Since the process started", status["uptime_seconds"]),
    ):
        yield GaugeMetricFamily(f"binlogd_{name}", text, value=float(value))
    yield from process_metrics(status)


def _families(
    specs: Iterable[_Spec],
    labels: tuple[str, ...],
    items: Sequence[tuple[dict[str, str], Mapping[str, Any]]],
) -> Iterator[Metric]:
    for spec in specs:
        kind = CounterMetricFamily if spec.counter else GaugeMetricFamily
        family = kind(f"binlogd_{spec.name}", spec.text, labels=labels)
        for names, item in items:
            if item[spec.member] is not None:
                family.add_metric(list(names.values()), float(item[spec.member]))
        yield family


def _build(status: doc.Status) -> Metric:
    labels, text = ("version",), "1, with the version of this binlogd"
    build = GaugeMetricFamily("binlogd_build_info", text, labels=labels)
    build.add_metric([status["version"]], 1.0)
    return build


def _doubted(items: Sequence[tuple[dict[str, str], Mapping[str, Any]]], most: int) -> Metric:
    marked = GaugeMetricFamily(
        "binlogd_target_rows_may_differ",
        "1 where something may have changed stored rows at the source alone",
        labels=("pipeline", "target"),
    )
    for names, item in items:
        for target in shown_names([*item["rows_may_differ"]], most):
            marked.add_metric([names["pipeline"], target], 1.0)
    return marked


def _expiries(credentials: Iterable[doc.Credential]) -> Metric:
    ends = GaugeMetricFamily(
        "binlogd_credential_expiry_timestamp_seconds",
        "When a certificate or token ends, Unix time",
        labels=("credential",),
    )
    for item in credentials:
        ends.add_metric([item["credential"]], item["expires_ms"] / 1000)
    return ends


def _pauses(items: Sequence[tuple[dict[str, str], Mapping[str, Any]]]) -> Metric:
    paused = GaugeMetricFamily(
        "binlogd_pipeline_paused_seconds",
        "Since a person paused it; absent while nobody has",
        labels=("pipeline",),
    )
    for names, item in items:
        if (pause := item["paused_by_a_person"]) is not None:
            paused.add_metric([names["pipeline"]], pause["seconds"])
    return paused


def _paused_targets(pauses: Mapping[str, Mapping[str, Any]], most: int) -> Metric:
    paused = GaugeMetricFamily(
        "binlogd_target_paused_seconds",
        "Since a person paused it; absent while nobody has",
        labels=("target",),
    )
    for target in shown_names([*pauses], most):
        paused.add_metric([target], pauses[target]["seconds"])
    return paused


def _lives(items: Sequence[tuple[dict[str, str], Mapping[str, Any]]]) -> Iterator[Metric]:
    stage = GaugeMetricFamily(
        "binlogd_pipeline_stage", "1 for the stage it is in", labels=("pipeline", "stage")
    )
    failed = GaugeMetricFamily(
        "binlogd_pipeline_failed", "1 when a data error stopped it", labels=("pipeline",)
    )
    stored = CounterMetricFamily(
        "binlogd_dead_letters", "Records stored as dead letters", labels=("pipeline",)
    )
    open_ = GaugeMetricFamily(
        "binlogd_dead_letters_open",
        "Stored letters neither replayed nor discarded",
        labels=("pipeline",),
    )
    waiting = GaugeMetricFamily(
        "binlogd_dead_letters_waiting", "Records that the store has not yet", labels=("pipeline",)
    )
    offsets = GaugeMetricFamily(
        "binlogd_offset_store_failing", "1 while positions can't be stored", labels=("pipeline",)
    )
    letters = GaugeMetricFamily(
        "binlogd_dead_letter_store_failing", "1 while it takes no record", labels=("pipeline",)
    )
    for names, item in items:
        offsets.add_metric([names["pipeline"]], float(bool(item["offset_file"]["error"])))
        letters.add_metric([names["pipeline"]], float(bool(item["dead_letters"]["error"])))
        stored.add_metric([names["pipeline"]], float(item["dead_letters"]["stored"]))
        if item["dead_letters"]["open"] is not None:
            open_.add_metric([names["pipeline"]], float(item["dead_letters"]["open"]))
        waiting.add_metric([names["pipeline"]], float(item["dead_letters"]["waiting"]))
        stage.add_metric([names["pipeline"], item["stage"]], 1.0)
        failed.add_metric([names["pipeline"]], float(item["failure"] is not None))
    yield from (stage, failed, stored, open_, waiting, offsets, letters)


def _writes(items: Sequence[tuple[dict[str, str], Mapping[str, Any]]]) -> Iterator[Metric]:
    labels = ("pipeline", "target")
    flying = GaugeMetricFamily("binlogd_target_writes_in_flight", "0 or 1", labels=labels)
    spilled = GaugeMetricFamily(
        "binlogd_target_spilled_bytes", "Of those in quarantine", labels=labels
    )
    for names, item in items:
        if item["quarantine"] is not None:
            spilled.add_metric(list(names.values()), float(item["quarantine"]["bytes"]))
    yield spilled
    away = GaugeMetricFamily(
        "binlogd_target_away_seconds", "Since its sink stopped answering", labels=labels
    )
    kept = GaugeMetricFamily(
        "binlogd_target_away_spilled_bytes", "Of those whose sink is away", labels=labels
    )
    for names, item in items:
        if item["away"] is not None:
            away.add_metric(list(names.values()), item["away"]["seconds"] or 0.0)
            kept.add_metric(list(names.values()), float(item["away"]["bytes"]))
    yield from (away, kept)
    age = GaugeMetricFamily(
        "binlogd_target_write_age_seconds", "Since it was handed over; 0 without one", labels=labels
    )
    failing = GaugeMetricFamily(
        "binlogd_target_failing", "1 while its last error lasts", labels=labels
    )
    for names, item in items:
        write, error = item["write"], item["last_error"]
        flying.add_metric(list(names.values()), float(write is not None))
        age.add_metric(list(names.values()), write["age_seconds"] if write else 0.0)
        failing.add_metric(list(names.values()), float(bool(error and error["lasting"])))
    yield from (flying, age, failing)

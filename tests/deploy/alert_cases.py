"""For each alert: series that make it fire, and when; then what ends it. In promtool's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

P = '{instance="a:9464",job="binlogd",pipeline="shop"}'
PART = '{instance="a:9464",job="binlogd",pipeline="shop",partition="t:0"}'
T = '{instance="a:9464",job="binlogd",pipeline="shop",target="lake.s.t"}'
PAUSED = '{instance="a:9464",job="binlogd",target="lake.s.t"}'
U = '{instance="a:9464",job="binlogd",pipeline="shop",target="lake.s.u"}'
D = '{instance="a:9464",job="binlogd"}'


@dataclass(frozen=True)
class Case:
    """Series of one sample a minute. ``fires`` and ``quiet``: minutes at which it does, or not."""

    alert: str
    series: dict[str, str]
    fires: tuple[int, ...]
    quiet: tuple[int, ...]
    labels: dict[str, str] = field(default_factory=lambda: {"pipeline": "shop"})


DAEMON: dict[str, str] = {}


def collector(metric: str, state: str = "") -> str:
    """A collector's series."""
    labels = f',state="{state}"' if state else ""
    return f'binlogd_collector_{metric}{{instance="a:9464",job="binlogd",collector="shop"{labels}}}'


CASES = [
    Case("BinlogdDown", {f"up{D}": "0x10 1x10"}, (6,), (4, 12), DAEMON),
    Case("BinlogdStuck", {f"binlogd_healthy{D}": "0x10 1x10"}, (3,), (1, 12), DAEMON),
    Case("BinlogdNotReady", {f"binlogd_ready{D}": "0x20 1x10"}, (16,), (14, 22), DAEMON),
    Case("BinlogdPipelineFailed", {f"binlogd_pipeline_failed{P}": "1x5 0x10"}, (2,), (0, 7)),
    Case("BinlogdBrokerUnreachable", {f"binlogd_broker_unreachable_seconds{P}":
         "0+60x8 _x10"}, (5,), (2, 15)),
    Case("BinlogdProgramDown", {
        'binlogd_program_down_seconds{instance="a:9464",job="binlogd",program="broker"}':
         "0+60x8 0x10"}, (5,), (2, 15), {"program": "broker"}),
    Case("BinlogdCollectorLost", {collector("state", "lost"): "1x5 _x10"}, (3,), (0, 14),
         {"collector": "shop", "state": "lost"}),
    Case("BinlogdCollectorFailed", {collector("state", "failed"): "1x8 _x10"}, (7,), (3, 16),
         {"collector": "shop", "state": "failed"}),
    Case("BinlogdCollectorFailed", {collector("state", "paused"): "1x20"}, (), (15,)),
    Case("BinlogdCollectorPurge", {collector("purge_seconds"): "90000-1000x12 90000x10"},
         (12,), (3, 20), {"collector": "shop"}),
    Case("BinlogdCollectorPurge", {collector("room_bytes"): "9e9x20"}, (), (15,)),
    Case("BinlogdRegistryAway", {f"binlogd_registry_away_seconds{P}": "0+60x8 _x10",
         f"binlogd_messages_awaiting_schemas{P}": "4x8 0x10"}, (5,), (2, 15)),
    # All schemas are kept: its absence holds nothing up.
    Case("BinlogdRegistryAway", {f"binlogd_registry_away_seconds{P}": "0+60x20",
         f"binlogd_messages_awaiting_schemas{P}": "0x20"}, (), (15,)),
    Case("BinlogdLagUnknown", {f"binlogd_pipeline_log_ends_unknown_seconds{P}":
         "0+60x10 _x10"}, (9,), (3, 17)),
    Case("BinlogdLagGrowing", {f"binlogd_pipeline_lag_seconds{P}": "0+60x40 2400-200x12"},
         (30,), (5, 55)),
    # A catch-up after a stop of hours: far behind, and less with each minute.
    Case("BinlogdLagGrowing", {f"binlogd_pipeline_lag_seconds{P}": "9000-60x60"}, (), (15, 30, 50)),
    Case("BinlogdNothingWritten", {f"binlogd_pipeline_lag_messages{P}": "9x60",
         f"binlogd_target_rows_written_total{T}": "500x40 500+60x20"}, (35,), (5, 55)),
    Case("BinlogdNothingWritten", {f"binlogd_pipeline_lag_messages{P}": "9x20 0x20"}, (12,), (30,)),
    Case("BinlogdNothingWritten", {f"binlogd_pipeline_lag_messages{P}": "0x60",
         f"binlogd_target_rows_written_total{T}": "500x60"}, (), (40,)),
    # Somebody paused it on purpose; forgotten, it is a ticket.
    Case("BinlogdLagGrowing", {f"binlogd_pipeline_lag_seconds{P}": "0+60x40",
         f"binlogd_pipeline_paused_seconds{P}": "0+60x40"}, (), (30,)),
    Case("BinlogdNothingWritten", {f"binlogd_pipeline_lag_messages{P}": "9x60",
         f"binlogd_target_rows_written_total{T}": "500x60",
         f"binlogd_pipeline_paused_seconds{P}": "0+60x60"}, (), (35, 55)),
    Case("BinlogdPaused", {f"binlogd_pipeline_paused_seconds{P}": "0+60x500 _x20"},
         (490,), (470, 510)),
    Case("BinlogdFrontierHeld", {f"binlogd_partition_unapplied_messages{PART}": "70x80",
         f"binlogd_partition_frontier_offset{PART}": "5x50 6+1x30"}, (40,), (15, 75)),
    Case("BinlogdFrontierHeld", {f"binlogd_partition_unapplied_messages{PART}": "0x80",
         f"binlogd_partition_frontier_offset{PART}": "5x80"}, (), (60,)),
    Case("BinlogdTargetFailing", {f"binlogd_target_failing{T}": "1x20 0x10",
         f"binlogd_target_failing{U}": "0x30"}, (16,), (14, 25)),
    # Somebody paused it on purpose; forgotten, it is a ticket.
    Case("BinlogdTargetFailing", {f"binlogd_target_failing{T}": "1x40",
         f"binlogd_target_paused_seconds{PAUSED}": "0+60x40"}, (), (30,)),
    Case("BinlogdPaused", {f"binlogd_target_paused_seconds{PAUSED}": "0+60x500 _x20"},
         (490,), (470, 510), {"target": "lake.s.t"}),
    # In quarantine it is a ticket of its own.
    Case("BinlogdTargetFailing", {f"binlogd_target_failing{T}": "1x40",
         f"binlogd_target_spilled_bytes{T}": "9x40"}, (), (30,)),
    Case("BinlogdQuarantine", {f"binlogd_target_spilled_bytes{T}": "0x10 _x10"}, (6,), (4, 17)),
    Case("BinlogdDeadLetters", {f"binlogd_dead_letters_open{P}": "0x5 3x100 0x5"}, (8, 60, 100),
         (4, 108)),
    Case("BinlogdDeadLetterStoreFailing", {f"binlogd_dead_letter_store_failing{P}":
         "1x10 0x10"}, (6,), (4, 13)),
    Case("BinlogdCutsNotMade", {f"binlogd_cut_failing{P}": "1x15 0x10"}, (11,), (9, 18)),
    Case("BinlogdGateNotLooked", {
         'binlogd_gate_unseen_seconds{instance="a:9464",job="binlogd",gate="g"}': "0+60x20 5x10"},
         (17,), (14, 24), {"gate": "g"}),
    Case("BinlogdGateNotTold", {
         'binlogd_gate_way_failing_seconds{instance="a:9464",job="binlogd",gate="g",way="topic"}':
         "0+60x20 0x10"}, (17,), (14, 24), {"gate": "g", "way": "topic"}),
    Case("BinlogdGateShut", {
         'binlogd_gate_shut{instance="a:9464",job="binlogd",gate="g"}': "1x130 0x10"},
         (121,), (119, 133), {"gate": "g"}),
    Case("BinlogdOffsetStoreFailing", {f"binlogd_offset_store_failing{P}": "1x10 0x10"},
         (6,), (4, 13)),
    Case("BinlogdJvmDown", {f"binlogd_spark_up{D}": "0x15 1x10"}, (11,), (9, 18), DAEMON),
    Case("BinlogdJvmRestarts", {f"binlogd_spark_rebuilt_total{D}": "0 1 2 3 3x100"},
         (10,), (1, 80), DAEMON),
    Case("BinlogdBudgetExhausted", {f"binlogd_pipeline_held{P}": "0x10 1x50 0x20"},
         (50,), (5, 24, 75)),
    Case("BinlogdRetentionHalf", {f"binlogd_partition_retention_left_seconds{PART}":
         "9000-300x20 9000x10", f"binlogd_partition_retention_seconds{PART}": "10000x30"},
         (20,), (10, 25)),
    Case("BinlogdRetentionLow", {f"binlogd_partition_retention_left_seconds{PART}":
         "9000-300x29 9000x10", f"binlogd_partition_retention_seconds{PART}": "10000x40"},
         (29,), (20, 35)),
    # Cut by size: the log's start comes nearer, two hours are left; then the reader gets on.
    Case("BinlogdRetentionLow", {f"binlogd_partition_log_start_offset{PART}": "0+100x120",
         f"binlogd_partition_frontier_offset{PART}": "20000x60 100000x60",
         f"binlogd_partition_lag_messages{PART}": "9x120"}, (40,), (100,)),
    Case("BinlogdChangesLost", {f"binlogd_partition_log_start_offset{PART}": "7x20",
         f"binlogd_partition_frontier_offset{PART}": "5x10 9x10",
         f"binlogd_partition_lag_messages{PART}": "9x20"}, (5,), (0, 15)),
    Case("BinlogdRowsMayDiffer", {f"binlogd_target_rows_may_differ{T}": "1x5 _x10"}, (2,), (12,)),
    Case("BinlogdVerificationDiffers", {f"binlogd_verify_rows_differing{P}": "3x20",
         f"binlogd_verify_rows_repaired{P}": "1x5 3x15"}, (2,), (10,)),
    Case("BinlogdJobFailed", {
         'binlogd_job_state{instance="a:9464",job="binlogd",exported_job="load-1",kind="load",'
         'pipeline="shop",state="failed"}': "1x5 _x10"}, (2,), (12,),
         {"pipeline": "shop", "exported_job": "load-1", "state": "failed"}),
    Case("BinlogdStateFull", {
         'binlogd_state_bytes{instance="a:9464",job="binlogd",part="spills"}': "5e9x8 1e9x10",
         'binlogd_state_bytes{instance="a:9464",job="binlogd",part="broker"}': "3e9x20",
         f"binlogd_state_limit_bytes{D}": "10e9x20"}, (5,), (1, 15), DAEMON),
    # promtool's clock begins at 1970: 864000 is ten days later, 86400 one.
    Case("BinlogdCredentialEnds", {
         'binlogd_credential_expiry_timestamp_seconds{instance="a:9464",job="binlogd",'
         'credential="kafka.ssl.certificate.location"}': "864000x5 9000000x5"}, (2,), (8,),
         {"credential": "kafka.ssl.certificate.location"}),
    Case("BinlogdCredentialEndsSoon", {
         'binlogd_credential_expiry_timestamp_seconds{instance="a:9464",job="binlogd",'
         'credential="kafka.ssl.certificate.location"}': "86400x5 864000x5"}, (2,), (8,),
         {"credential": "kafka.ssl.certificate.location"}),
]  # fmt: skip


def document(cases: list[Case], severity: dict[str, str]) -> dict[str, Any]:
    """The cases as promtool reads them; annotations are not compared."""
    return {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [_test(case, severity[case.alert]) for case in cases],
    }


def _test(case: Case, severity: str) -> dict[str, Any]:
    labels = {"instance": "a:9464", "job": "binlogd", "severity": severity, **case.labels}
    return {
        "name": case.alert,
        "interval": "1m",
        "input_series": [{"series": s, "values": values} for s, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": expected}
            for minutes, expected in ((case.fires, [{"exp_labels": labels}]), (case.quiet, []))
            for minute in minutes
        ],
    }

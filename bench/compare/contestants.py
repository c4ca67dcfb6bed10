"""Who is measured: by name the program, its variant, and how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.compare.job import CATALOG


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program of bench.peers as one contestant."""

    name: str
    what: str
    """In a line, for people."""
    program: str
    """A module."""
    variant: dict[str, str] = field(default_factory=dict)
    runs: int = 1
    time_boxed: bool = False
    makes_tables: bool = False
    """It can't take the tables as binlogd makes them."""
    one_partition: bool = False
    """It reads the same stream from a topic of one partition."""
    big: bool = False
    """Its files are a gigabyte: only with PEERS=all."""


BASE = "binlogd"
NO_SINK = "binlogd-no-sink"
LOAD = "binlogd-load"
REPLICATE = "binlogd-replicate"
BASES = (BASE, NO_SINK, LOAD, REPLICATE)
"""Whose figures the others' are ratios to: the first of them that takes part."""

CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant(BASE, 'binlogd, write = "merge"', "bench.peers.binlogd", runs=3),
        Contestant(
            "expert",
            "Spark Structured Streaming as an expert writes it",
            "bench.peers.streaming_expert",
            runs=3,
        ),
        Contestant(
            "expert-c1",
            "the same on a JVM without C2, as binlogd's",
            "bench.peers.streaming_expert",
            {"jit": "c1"},
        ),
        Contestant(
            "binlogd-equality",
            'binlogd, write = "equality"',
            "bench.peers.binlogd",
            {"write": "equality"},
            runs=3,
        ),
        Contestant(
            "binlogd-counts",
            "binlogd, which counts the source's changes in each table",
            "bench.peers.binlogd",
            {"counts": f"{CATALOG}.binlogd.counts"},
            runs=3,
        ),
        Contestant(
            "binlogd-cuts",
            "binlogd, which cuts all tables every 10 s",
            "bench.peers.binlogd",
            {"cut_every": "10s"},
            runs=3,
        ),
        Contestant(
            "binlogd-one-partition",
            "binlogd, the same stream in one partition",
            "bench.peers.binlogd",
            runs=3,
            one_partition=True,
        ),
        Contestant(
            "tutorial",
            "Spark Structured Streaming as the tutorial writes it",
            "bench.peers.streaming_tutorial",
            time_boxed=True,
        ),
        Contestant(
            "naive",
            "an actor a record: a message each, a write per table and poll",
            "bench.peers.naive",
            time_boxed=True,
        ),
        Contestant(
            "flink-sql",
            "Flink SQL in upsert mode, 20 sinks from one source, or a source each",
            "bench.peers.flink_sql",
            makes_tables=True,
            big=True,
        ),
        Contestant(
            "connect-sink",
            "Iceberg's Kafka Connect sink, standalone",
            "bench.peers.connect_sink",
            makes_tables=True,
        ),
        Contestant(
            "debezium-jdbc",
            "Debezium's JDBC sink connector on Kafka Connect, standalone",
            "bench.peers.debezium_jdbc",
            runs=3,
        ),
        Contestant(
            "expert-jdbc",
            "Spark Structured Streaming into a database as an expert writes it",
            "bench.peers.streaming_jdbc",
            runs=3,
        ),
        Contestant(
            "bare-consume", "consume() alone: the limit", "bench.peers.bare_consume", runs=3
        ),
        Contestant(
            NO_SINK,
            "binlogd up to the net changes, nothing written",
            "bench.peers.binlogd_no_sink",
            runs=3,
        ),
        Contestant(
            LOAD, "`tables load` by a running daemon", "bench.peers.loads.binlogd_load", runs=3
        ),
        Contestant(
            "binlogd-load-margin",
            "the same without positions: it waits for `load.margin_s`",
            "bench.peers.loads.binlogd_load",
            {"by_positions": "false"},
        ),
        Contestant(
            "spark-jdbc",
            "spark.read.jdbc between the key's least and greatest, appended",
            "bench.peers.loads.spark_jdbc",
            runs=3,
        ),
        Contestant(
            "debezium-snapshot",
            "Debezium's snapshot on Kafka Connect, from the topic by binlogd",
            "bench.peers.loads.debezium_snapshot",
        ),
        Contestant(
            REPLICATE,
            "`binlogd replicate` alone: broker, collector, load, verification, stream",
            "bench.peers.loads.binlogd_replicate",
            makes_tables=True,
            runs=3,
        ),
        Contestant(
            "debezium-streaming",
            "Debezium's snapshot and stream on Kafka Connect, Structured Streaming as an expert",
            "bench.peers.loads.debezium_streaming",
            makes_tables=True,
            runs=3,
        ),
        Contestant(
            "parallel-consumer",
            "Confluent Parallel Consumer in KEY order, no work",
            "bench.peers.parallel_consumer",
        ),
    )
}


def turns(contestants: Sequence[Contestant], most: int) -> list[tuple[Contestant, int]]:
    """The runs of a workload in their order, each with its number: the contestants take turns.

    So what the machine does meanwhile harms all alike. Nobody has more than ``most`` runs.
    """
    return [(c, number) for number in range(most) for c in contestants if number < c.runs]

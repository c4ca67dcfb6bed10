"""What the harness asks of a contestant, and what it hears from one.

A contestant is a program, ``python -m bench.peers.NAME job.json``: it reads a ``Job``, prints
events as JSON lines on standard output, and ends. What else it says goes to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

CATALOG = "lake"
"""The catalog's name, which Iceberg's JdbcCatalog keeps in its tables: the same for everybody."""
NAMESPACE = "bench"
DATABASES = ("postgresql", "mariadb")
"""What a job's catalog may be where it is none of Iceberg's."""


class Column(msgspec.Struct, frozen=True):
    """A column: as MySQL declares it, and as Spark's SQL declares it in the lake."""

    name: str
    mysql: str
    spark: str


class TableSpec(msgspec.Struct, frozen=True):
    """A table. The source's database and the lake's namespace have the same name, NAMESPACE."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]


class Job(msgspec.Struct, frozen=True):
    """One run of one contestant on one workload."""

    workload: str
    format: Literal["canal-json", "tencent-dts", "debezium-json", "debezium-avro"]
    mode: Literal["upsert", "append"]
    bootstrap: str
    topic: str
    """It has one partition, 0, unless ``ends`` says other."""
    end: int
    """How many messages are to be applied: of one partition the offset, exclusive."""
    live: bool
    """The messages are produced while the contestant runs, from its ``begin`` on; else they are
    all there before."""
    tables: tuple[TableSpec, ...]
    catalog: dict[str, str]
    """The properties of the Iceberg catalog. Of a database ``url``, ``user``, and as ``type`` what
    it is, one of DATABASES."""
    prepared: bool
    """The tables are there already, as binlogd makes them (format v3, merge-on-read), some with
    rows; else the contestant makes them, before its ``begin``."""
    folder: str
    """Scratch of the contestant's own, empty."""
    jars: str
    """Folder of the project's jars: ``lake`` and ``kafka`` below it."""
    peer_jars: str
    """Folder below which the contestants' own jars are, one folder for each list in bench/peers."""
    cores: int
    ends: dict[str, tuple[int, ...]] = {}
    """By topic the end of each of its partitions, where that is more than ``topic`` and ``end``."""
    registry: str = ""
    """The address of Confluent's API where the schemas of ``debezium-avro`` are."""
    variant: dict[str, str] = {}
    """What tells two runs of one program apart, such as ``{"write": "equality"}``."""
    source: dict[str, str] = {}
    """The database whose table is to be loaded: host, port, user, password. The topic is empty."""
    marker: str = ""
    """What the last change names the row with the key 0, where rows change while they are loaded.
    """
    time_box_s: float | None = None
    """After so long it stops where it can say what it has reached, and says so; None: never."""

    @property
    def places(self) -> dict[str, tuple[int, ...]]:
        """By topic the end of each of its partitions."""
        return self.ends or {self.topic: (self.end,)}


class Begin(msgspec.Struct, frozen=True, tag_field="event", tag="begin"):
    """Warmed up, from here on it consumes: the clock runs.

    ``pid``: the process that is measured with all it started, where the program only watches it.
    """

    pid: int | None = None


class Loaded(msgspec.Struct, frozen=True, tag_field="event", tag="loaded"):
    """The rows that were there before are in the table: what changes the source ends, with a last
    change of a row of its own, ``Job.marker``."""


class End(msgspec.Struct, frozen=True, tag_field="event", tag="end"):
    """The first ``reached`` messages are visible in the tables, and no others: the clock stops."""

    reached: int
    figures: dict[str, Any] = {}
    """What the contestant knows of itself."""


class Missing(msgspec.Struct, frozen=True, tag_field="event", tag="missing"):
    """It can't be had here."""

    reason: str


Event = Begin | Loaded | End | Missing


def read_job() -> Job:
    """The job that the command line names."""
    (path,) = sys.argv[1:]
    return msgspec.json.decode(Path(path).read_bytes(), type=Job)


def tell(event: Event) -> None:
    """Print an event. A contestant's only words on standard output."""
    print(msgspec.json.encode(event).decode(), flush=True)

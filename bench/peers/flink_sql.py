"""Flink SQL with Iceberg's sink in upsert mode: as many sinks as tables, one source, one job.

How an expert sets it up:

- One table over the topic in the format canal-json, with the message's table as a metadata column;
  each sink filters by it, and the planner makes one scan of all of them. So the source's columns
  are those of all tables, and a column must have the same type in each.
- Format v2 tables, ``write.upsert.enabled``: an equality delete and a row for each change. The
  planner's own materialization of upserts is off: a key's changes come in the partition's order.
- Debezium's Avro has no metadata column that tells the table: there each table has a topic of its
  own, so a source, in the format debezium-avro-confluent; still one job.
- A checkpoint, and with it a commit in each table, every 10 s; operators hand on objects as they
  are (object reuse).
- Parallelism 1: see ``PARALLELISM``; ``{"parallelism": "2"}`` is a variant.
- JVM and cluster (one task manager in the same JVM, 4 GB of heap) are up before the clock begins,
  and the same job has run once over the first messages, into tables of a catalog that is not
  compared. The clock begins when the job has been submitted.
- It ends by itself: the source is bounded by the job's end offset, and Flink's last checkpoint
  commits what is left.

The tables are in the same catalog as everybody's. Flink has no format for Tencent's protobuf.
Its jars are those of the PyPI package apache-flink-libraries, without PyFlink, which adds nothing
to SQL but Python's dependencies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from actors.runtime.jars import JarsError
from bench.compare.job import (
    CATALOG,
    NAMESPACE,
    Begin,
    Column,
    End,
    Job,
    Missing,
    TableSpec,
    read_job,
    tell,
)
from bench.peers.flink_libraries import fetch_libraries
from bench.peers.jars import FLINK_LIBRARIES, classpath, fetch_peer
from bench.peers.java_program import compile_class, run_class

LIST = "flink"
PARALLELISM = 1
"""One partition is read and parsed by one task whatever it is; with more, rows are copied to other
tasks by key, and each table gets a file from each writer."""
CHECKPOINT_S = 10
_WARM = "warm"
"""The catalog, and the source, of the job that warms up."""
_WARM_MESSAGES = 10_000
"""It takes some seconds, and Java has compiled what is run for each row."""
_SEPARATOR = "\n;;\n"
"""Between two statements; RunFlink.java divides the file by it."""

_TYPES = {"TIMESTAMP_NTZ": "TIMESTAMP(6)", "TIMESTAMP": "TIMESTAMP_LTZ(6)", "BINARY": "BYTES"}
"""Where Flink names a type otherwise than Spark."""
_AVRO_TYPES = {"TIMESTAMP_NTZ": "TIMESTAMP(3)"}
"""Where Debezium's Avro has another: milliseconds."""

_OPENED = (
    "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text",
    "java.time", "java.util", "java.util.concurrent", "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
)  # fmt: skip
"""The packages that Flink's own start script opens on Java 17 (``env.java.opts.all``)."""


def settings(job: Job) -> dict[str, str]:
    """What goes into Flink's configuration."""
    return {
        "parallelism.default": job.variant.get("parallelism", str(PARALLELISM)),
        "execution.checkpointing.interval": f"{CHECKPOINT_S} s",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (Path(job.folder) / "checkpoints").as_uri(),
        "state.backend.type": "hashmap",
        "pipeline.object-reuse": "true",
        "table.exec.sink.upsert-materialize": "NONE",
        "table.exec.iceberg.use-v2-sink": job.variant.get("v2-sink", "false"),
        "rest.address": "127.0.0.1",
        "rest.bind-port": "0",
        "taskmanager.memory.network.min": "256 mb",
        "taskmanager.memory.network.max": "256 mb",
        "taskmanager.memory.managed.size": "64 mb",
        "io.tmp.dirs": str(Path(job.folder) / "tmp"),
    }


def statements(job: Job) -> list[str]:
    """The SQL; its last statement is the job. Raises ValueError where it can't be said in SQL."""
    warm = Path(job.folder) / _WARM
    apart = {"uri": f"jdbc:sqlite:{warm}.db", "warehouse": str(warm)}
    most = _WARM_MESSAGES // len(job.places)
    return [*_job(job, _WARM, job.catalog | apart, most), *_job(job, CATALOG, job.catalog)]


class _Source(NamedTuple):
    """A table over a topic, and the tables whose changes are there."""

    name: str
    topic: str
    tables: tuple[TableSpec, ...]


def _job(
    job: Job, catalog: str, properties: Mapping[str, str], most: int | None = None
) -> list[str]:
    """The statements that bring the messages, of each topic at most so many, into a catalog."""
    name = f"{catalog}_changes"
    if job.registry:
        each = zip(job.places, job.tables, strict=True)
        sources = [_Source(f"{name}_{table.name}", topic, (table,)) for topic, table in each]
    else:
        sources = [_Source(name, job.topic, job.tables)]
    inserts = "".join(_inserts(catalog, source, job) for source in sources)
    return [
        _catalog(catalog, properties),
        f"CREATE DATABASE `{catalog}`.`{NAMESPACE}`",
        *(_created(source, job, most) for source in sources),
        *(_sink(catalog, table) for table in job.tables),
        f"EXECUTE STATEMENT SET\nBEGIN\n{inserts}END",
    ]


def _catalog(name: str, properties: Mapping[str, str]) -> str:
    options = {
        "type": "iceberg",
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        **{key: value for key, value in properties.items() if key != "type"},
    }
    return f"CREATE CATALOG `{name}` WITH ({_options(options)})"


def _created(source: _Source, job: Job, most: int | None) -> str:
    types = _AVRO_TYPES if job.registry else {}
    columns: dict[str, str] = {}
    for table in source.tables:
        for column in table.columns:
            type_ = types.get(column.spark) or _type(column.spark)
            if columns.setdefault(column.name, type_) != type_:
                raise ValueError(f"column {column.name} is {type_} and {columns[column.name]}")
    declared = [f"`{column}` {type_}" for column, type_ in columns.items()]
    if not job.registry:
        declared.append("`from_table` STRING METADATA FROM 'value.table' VIRTUAL")
    ends = ";".join(
        f"partition:{partition},offset:{end if most is None else min(end, most)}"
        for partition, end in enumerate(job.places[source.topic])
    )
    options = {
        "connector": "kafka",
        "topic": source.topic,
        "properties.bootstrap.servers": job.bootstrap,
        "properties.group.id": "flink-sql",
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": ends,
        **_format(job),
    }
    told = f"({', '.join(declared)}) WITH ({_options(options)})"
    return f"CREATE TEMPORARY TABLE `{source.name}` {told}"


def _format(job: Job) -> dict[str, str]:
    if not job.registry:
        return {"format": "canal-json"}
    name = "debezium-avro-confluent"
    return {"format": name, f"{name}.url": job.registry}


def _sink(catalog: str, table: TableSpec) -> str:
    declared = [
        f"`{column.name}` {_type(column.spark)}{' NOT NULL' if column.name in table.key else ''}"
        for column in table.columns
    ]
    key = ", ".join(f"`{name}`" for name in table.key)
    options = {"format-version": "2", "write.upsert.enabled": "true"}
    return (
        f"CREATE TABLE `{catalog}`.`{NAMESPACE}`.`{table.name}`"
        f" ({', '.join(declared)}, PRIMARY KEY ({key}) NOT ENFORCED) WITH ({_options(options)})"
    )


def _inserts(catalog: str, source: _Source, job: Job) -> str:
    return "".join(
        f"INSERT INTO `{catalog}`.`{NAMESPACE}`.`{table.name}` SELECT"
        f" {', '.join(_taken(column, job) for column in table.columns)} FROM `{source.name}`"
        f"{'' if job.registry else f' WHERE `from_table` = {text(table.name)}'};\n"
        for table in source.tables
    )


def _taken(column: Column, job: Job) -> str:
    """A column of the source, in the sink's type."""
    if job.registry and column.spark in _AVRO_TYPES:
        return f"CAST(`{column.name}` AS {_type(column.spark)})"
    return f"`{column.name}`"


def _type(spark: str) -> str:
    return _TYPES.get(spark, spark)


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{text(key)} = {text(value)}" for key, value in options.items())


def text(value: str) -> str:
    """A text in SQL."""
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def java_options(folder: Path) -> Iterator[str]:
    """What the JVM is told."""
    yield "-Xmx4g"
    yield f"-Djava.io.tmpdir={folder / 'tmp'}"
    for package in _OPENED:
        yield f"--add-opens=java.base/{package}=ALL-UNNAMED"


def main() -> None:
    """Run the job, or say why that can't be."""
    job = read_job()
    if job.format not in ("canal-json", "debezium-avro") or job.mode != "upsert":
        tell(Missing(f"Flink SQL has no format for {job.format} in mode {job.mode}"))
        return
    try:
        jars = Path(job.peer_jars)
        fetch_peer(LIST, jars)
        fetch_libraries(jars)
        compiler = classpath(jars / LIST / "compiler")
        libraries = os.pathsep.join(
            [classpath(jars / FLINK_LIBRARIES), classpath(jars / LIST / "flink"), _sqlite(job)]
        )
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    _run(job, compiler, libraries)


def _sqlite(job: Job) -> str:
    return str(next((Path(job.jars) / "lake").glob("sqlite-jdbc-*.jar")))


def _run(job: Job, compiler: str, libraries: str) -> None:
    folder = Path(job.folder)
    (folder / "tmp").mkdir()
    compile_class("RunFlink", compiler, libraries, folder)
    told, sql, log = folder / "settings", folder / "job.sql", folder / "flink.log"
    configuration = settings(job)
    told.write_text("".join(f"{key}: {value}\n" for key, value in configuration.items()))
    sql.write_text(_SEPARATOR.join(statements(job)))
    (folder / "log4j2.properties").write_text(_LOGGING)
    path = os.pathsep.join([str(folder), libraries])
    # One slot for each subtask: all operators of a job share them.
    slots = configuration["parallelism.default"]
    for line in run_class("RunFlink", path, (told, sql, slots), log, list(java_options(folder))):
        match line.split():
            case ["begin", pid]:
                tell(Begin(int(pid)))
            case ["end"]:
                tell(End(job.end))


_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c %m%n
"""


if __name__ == "__main__":
    main()

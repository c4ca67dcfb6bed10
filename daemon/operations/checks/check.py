"""``binlogd check-config``: lists what is wrong, what is unwise, and what the daemon would do.

``daemon.config.config`` has checked the file already. Here is what needs a library, the disk or,
with ``--connect``, the broker and the catalog.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from actors.contract.ports import NotKept
from changes.formats import AUTO
from changes.model.errors import SinkUnavailable
from changes.routes.routing import Route
from daemon.config.config import Config
from daemon.config.loopback import is_loopback
from daemon.config.pipelines import PipelineSection
from daemon.config.sections import MetricsSection
from daemon.operations.checks.check_cuts import planned_cuts
from daemon.operations.checks.check_databases import missing_drivers, planned
from daemon.operations.checks.check_gates import gate_warnings, own_topics_missing, planned_gates
from daemon.operations.checks.check_registries import (
    planned_registries,
    unusable_registries,
    unused_registries,
)
from daemon.tracing.opening import missing_packages
from settings.secrets import MASK, SHORTEST, looks_secret
from sources.base.port import NotAnswered, TopicMissing
from sources.base.topic_selection import is_pattern
from sources.opening import open_source, open_topics
from sparkwriter.sinks import sinks_of

TrySinks = Callable[[], Iterable[str]]
"""Starts the real sinks, tries them and stops them again. Raises SinkUnavailable."""


def problems(config: Config) -> Iterator[str]:
    """Problems that would keep the daemon from starting, as far as this machine shows them. One
    line each."""
    yield from _unusable_folders(config)
    for name in config.pipeline:
        for at, reason in open_source(config, name).problems():
            yield config.redactor.text(f"{at}: {reason}")
    for name, sink in sinks_of(config).items():
        yield from (f"sink.{name}.{line}" for line in sink.problems())
    yield from unusable_registries(config)
    yield from missing_drivers(config)
    yield from missing_packages(config.tracing)
    catalogs = _catalogs(config)
    if catalogs:
        from sparkwriter.spark_sessions import spark_problems  # pyspark: not always installed

        yield from spark_problems(config, catalogs)


def _of_spark(config: Config) -> Iterator[str]:
    if _catalogs(config):
        from sparkwriter.spark_sessions import spark_warnings  # pyspark: not always installed

        yield from spark_warnings(config)
    elif "spark" in config.model_fields_set:
        yield "spark: no sink is written with it, so none is started"


def _open_to_others(metrics: MetricsSection) -> Iterator[str]:
    address = metrics.address
    if not isinstance(address, tuple) or is_loopback(address[0]):
        return
    if metrics.token:
        said = "the token goes over the network as it is; put a proxy with TLS before it"
    else:
        said = "anyone who reaches it may read the metrics; the page needs metrics.token"
    yield f"metrics.listen: {address[0]} is no loopback address; {said}"


def _full_of_log(config: Config) -> Iterator[str]:
    """A state directory that the embedded broker's log alone may fill."""
    broker, most = config.broker, config.daemon.state_max_bytes
    topics = max(1, len(config.embedded_topics()))
    if broker.embedded and most is not None and (log := topics * broker.max_bytes) >= most:
        yield (
            f"daemon.state_max_bytes: {most} is no more than the {log} bytes that the embedded "
            "broker may keep there (broker.max_bytes for each topic): once its log has come to "
            "the bound, no spill and no dead letter is taken"
        )


def warnings(config: Config, path: Path) -> Iterator[str]:
    """Settings that are legal but unwise. One line each."""
    yield from _exposed_secrets(config, path)
    yield from _kafka_warnings(config)
    yield from _open_to_others(config.metrics)
    yield from unused_registries(config)
    for key, folder in _folders(config):
        if Path(tempfile.gettempdir()) in folder.parents:
            yield f"daemon.{key}: a folder for temporary files may be emptied by the system"
    smallest = min(pipeline.quota.memory or 1.0 for pipeline in config.pipeline.values())
    held = int(config.memory.buffers_bytes * smallest / config.daemon.processors)
    asked = "max_bytes" in config.batch.model_fields_set
    asked = asked or "budget_bytes" in config.memory.model_fields_set
    if asked and config.batch.max_bytes > held:  # what nobody set, nobody has to change
        yield (
            f"batch.max_bytes: {config.batch.max_bytes} is more than the {held} bytes that "
            "memory.budget_bytes leaves each processor: a batch of that size is staged in pieces"
        )
    yield from _full_of_log(config)
    if config.daemon.commit_interval_s > 60:
        yield "daemon.commit_interval_s: after a crash that much is read again"
    yield from _of_spark(config)
    for name, sink in sinks_of(config).items():
        yield from (f"sink.{name}.{line}" for line in sink.warnings(config.spark))
    for name, database in config.database.items():
        yield from (f"database.{name}.url {line}" for line in database.warnings())
    yield from gate_warnings(config)
    yield from (f"{at}: {line}" for at, line in config.misplaced_options())
    for name, pipeline in config.pipeline.items():
        yield from (f"pipeline.{name}.offset_stores: {line}" for line in _weak_stores(pipeline))
        if pipeline.start.at == "latest":
            yield f"pipeline.{name}.start: what the topics hold already is never read"
        if any(map(is_pattern, pipeline.topics)) and not pipeline.remembers:
            yield (
                f"pipeline.{name}.offset_stores: neither file nor kafka-topic: where the group's "
                "commits have expired, topics that came meanwhile begin at start, not at their "
                "first message"
            )


def _weak_stores(pipeline: PipelineSection) -> Iterator[str]:
    if not {"kafka-commit", "kafka-topic"} & set(pipeline.offset_stores):
        yield (
            "neither kafka-commit nor kafka-topic: another member of the group, or another "
            "machine, would not find the positions and begin at start"
        )
    if not pipeline.remembers:
        yield (
            "neither file nor kafka-topic: a topic that is recreated, a rewound group and a "
            "target that was rolled back are not noticed at the start"
        )


def connect_problems(config: Config, try_sinks: TrySinks) -> Iterator[str]:
    """Problems that broker and sinks report. Sinks are started only if they can't be tried
    otherwise."""
    for name, pipeline in config.pipeline.items():
        try:
            open_source(config, name).topic_ids()
        except (NotAnswered, TopicMissing) as error:
            yield f"pipeline.{name}: {error}"
        topic = pipeline.dead_letter_topic
        if topic is not None and pipeline.on_bad_record == "dead-letter":
            try:
                open_topics(config, name).letters(topic).check()
            except NotKept as error:
                yield f"pipeline.{name}.dead_letters: {error}"
    yield from own_topics_missing(config)
    tried = True
    for sink in sinks_of(config).values():
        try:
            tried = sink.probe() and tried
        except SinkUnavailable as error:
            yield str(error)
    if not tried:
        try:
            yield from try_sinks()
        except SinkUnavailable as error:
            yield str(error)


def plan(config: Config) -> Iterator[str]:
    """Lines about what the daemon would do, without secrets."""
    yield f"broker {config.redactor.text(str(config.kafka['bootstrap.servers']))}"
    for name, sink in config.sink.items():
        pairs = (f"{k} = {_shown(config, k, v)}" for k, v in sorted(sink.settings().items()))
        yield f"sink {name}: {sink.kind}; {', '.join(pairs)}"
    yield from planned(config)
    yield from planned_registries(config)
    for name, pipeline in config.pipeline.items():
        topics = ", ".join(pipeline.topics)
        if pipeline.exclude_topics:
            topics += f" without {', '.join(pipeline.exclude_topics)}"
        yield (
            f"pipeline {name}: {topics} ({pipeline.format}), group {config.group(name)}, "
            f"start {pipeline.start.at}"
        )
        if pipeline.format == AUTO:
            yield (
                "  each topic's format is detected from its first messages, which wait for that; "
                "it stays from then on (`binlogd status`, `binlogd offsets show`)"
            )
        yield from (f"  {line}" for line in _routes(config.routes(name)))
        topic = f" ({pipeline.offset_topic})" if "kafka-topic" in pipeline.offset_stores else ""
        yield f"  positions in {', '.join(pipeline.offset_stores)}{topic}"
        if pipeline.on_bad_record == "dead-letter":
            yield f"  bad records to {pipeline.dead_letters}"
        yield from planned_cuts(config, name)
        if pipeline.counts is not None:
            yield f"  changes are counted in {pipeline.counts}"
    yield from planned_gates(config)
    if config.metrics.listen:
        yield f"metrics, health and readiness on {config.metrics.listen}"
    yield f"state in {config.daemon.state_dir}, staged files in {config.daemon.staging_dir}"


def _catalogs(config: Config) -> dict[str, Mapping[str, str]]:
    """The catalogs that Spark must know, by the sinks' names."""
    catalogs = {name: sink.catalog() for name, sink in sinks_of(config).items()}
    return {name: properties for name, properties in catalogs.items() if properties is not None}


def _folders(config: Config) -> Iterator[tuple[str, Path]]:
    yield "state_dir", config.daemon.state_dir
    yield "staging_dir", config.daemon.staging_folder


def _unusable_folders(config: Config) -> Iterator[str]:
    for key, folder in _folders(config):
        there = next((p for p in (folder, *folder.parents) if p.exists()), folder)
        if not there.is_dir():
            yield f"daemon.{key}: {there} is not a folder"
        elif not os.access(there, os.W_OK | os.X_OK):
            yield f"daemon.{key}: {there} can't be written"


def _kafka_warnings(config: Config) -> Iterator[str]:
    tables = [("kafka", config.kafka)]
    tables += [(f"pipeline.{name}.kafka", p.kafka) for name, p in config.pipeline.items()]
    for at, table in tables:
        if table.get("isolation.level") == "read_uncommitted":
            yield f"{at}.isolation.level: changes of aborted transactions would be applied"
        if table.get("statistics.interval.ms") == 0:
            yield f"{at}.statistics.interval.ms: without statistics an outage is not seen"
        open_text = str(table.get("security.protocol", "")).lower() == "sasl_plaintext"
        if open_text and not config.broker.embedded:  # which listens on this machine alone
            yield f"{at}.security.protocol: the password may pass the network unencrypted"
        if table.get("enable.ssl.certificate.verification") is False:
            yield f"{at}.enable.ssl.certificate.verification: anybody may play the broker"


def _exposed_secrets(config: Config, path: Path) -> Iterator[str]:
    """Secrets that stand in the configuration itself, or in files that others may read."""
    text = path.read_text(encoding="utf-8")
    open_to = "others" if path.stat().st_mode & 0o044 else None
    for at, table in _tables(config):
        for key, value in table.items():
            if not (isinstance(value, str) and looks_secret(key)):
                continue
            if len(value) < SHORTEST:
                yield f"{at}.{key}: under {SHORTEST} characters, so it is not masked in the log"
            if value != value.strip():
                yield f"{at}.{key}: a space or a line's end around it is a part of it"
            if open_to and value in text:
                yield (
                    f"{at}.{key}: is in {path}, which others may read; "
                    "take it from ${file:…} or ${credential:…}, or chmod 600"
                )
    for name in sorted(set(re.findall(r"\$\{file:(?!-)([^}]+)\}", text))):
        file = path.resolve().parent / name
        if file.exists() and file.stat().st_mode & 0o044:
            yield f"{file}: holds a secret and others may read it; chmod 600"


def _tables(config: Config) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "kafka", config.kafka
    yield "spark.conf", config.spark.conf
    for name, sink in config.sink.items():
        yield f"sink.{name}", sink.settings()
    for name, pipeline in config.pipeline.items():
        yield f"pipeline.{name}.kafka", pipeline.kafka
        for route in pipeline.route:
            if route.mask_salt:
                yield f"pipeline.{name}.route {route.target}", {"mask_salt": route.mask_salt}
    for name, database in config.database.items():
        yield f"database.{name}", {"password": database.password} if database.password else {}
    for name, registry in config.registry.items():
        yield f"registry.{name}", registry.secrets()


def _routes(routes: Iterable[Route]) -> Iterator[str]:
    for route in routes:
        without = f" without {', '.join(route.exclude)}" if route.exclude else ""
        keys = f", keys {', '.join(route.keys)}" if route.keys else ""
        included = ", ".join(route.include)
        options = "".join(f", {name} {value}" for name, value in route.options)
        yield f"{included}{without} -> {route.template} ({route.mode.value}{options}{keys})"


def _shown(config: Config, key: str, value: str) -> str:
    return MASK if looks_secret(key) else config.redactor.text(value)

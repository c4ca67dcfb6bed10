"""What a collector gives to the pipelines that name it, and what does not fit together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from collector.connector.config import pipeline_topics, topic_of
from collector.connector.section import CollectorSection
from daemon.config.pipelines import PipelineSection
from databases.base.section import DatabaseSection
from sources.base.topic_selection import TopicSelection

FORMAT = "debezium-json"


def fed_by_collectors(document: Any) -> Any:
    """The file's document, its pipelines with topics, format and database of their collectors.

    Raises ValueError where a pipeline says otherwise itself.
    """
    pipelines = document.get("pipeline") if isinstance(document, dict) else None
    collectors = document.get("collector", {}) if isinstance(document, dict) else {}
    if not isinstance(pipelines, dict) or not isinstance(collectors, dict):
        return document
    problems: list[str] = []
    fed = {name: _fed(name, pipeline, collectors, problems) for name, pipeline in pipelines.items()}
    if problems:
        raise ValueError("\n".join(problems))
    return {**document, "pipeline": fed}


def _fed(name: str, pipeline: Any, collectors: Mapping[str, Any], problems: list[str]) -> Any:
    of = pipeline.get("collector") if isinstance(pipeline, dict) else None
    if not isinstance(of, str):
        return pipeline
    if of not in collectors:
        known = ", ".join(sorted(collectors)) or "none"
        problems.append(f"pipeline.{name}.collector: there is no collector {of!r}; have: {known}")
        return pipeline
    try:
        section = CollectorSection.model_validate(collectors[of])
    except ValidationError:
        return pipeline | {"topics": [of], "format": FORMAT}  # its own check reports it
    given: dict[str, Any] = {"topics": pipeline_topics(of, section), "format": FORMAT}
    if section.database is not None:
        given["database"] = section.database
    for key, value in given.items():
        if key in pipeline and pipeline[key] != value:
            problems.append(
                f"pipeline.{name}.{key}: collector {of!r} gives {value!r}: leave it out, or leave "
                "out collector and read topics as ever"
            )
    problems += [
        f"pipeline.{name}.{key}: does not go with collector = {of!r}"
        for key in ("databases", "registry")
        if key in pipeline
    ]
    return pipeline | given


def unfit_collectors(
    collectors: Mapping[str, CollectorSection],
    pipelines: Mapping[str, PipelineSection],
    databases: Mapping[str, DatabaseSection],
) -> Iterator[str]:
    """What of the collectors does not fit the other sections: a line each."""
    topics: dict[str, str] = {}
    for name, section in collectors.items():
        at, topic = f"collector.{name}", topic_of(name, section)
        if section.database is not None and section.database not in databases:
            known = ", ".join(sorted(databases)) or "none"
            yield f"{at}.database: there is no database {section.database!r}; have: {known}"
        elif section.database is not None and databases[section.database].login().is_socket:
            yield f"{at}.database: Debezium connects by TCP alone: name a host in its url"
        other = topics.setdefault(topic, name)
        if other != name:
            yield f"{at}.topic: {topic!r} is that of collector.{other}: a topic has one writer"
        if not readers(name, section, pipelines):
            yield (
                f"{at}: no pipeline reads it, and its topic would only grow: write "
                f'collector = "{name}" in a [pipeline.NAME]'
            )
    for name, pipeline in pipelines.items():
        if pipeline.collector and pipeline.kafka.get("isolation.level") == "read_uncommitted":
            yield (
                f"pipeline.{name}.kafka: isolation.level = read_uncommitted shows what a collector "
                "has taken back: each change once needs read_committed"
            )


def readers(
    name: str, section: CollectorSection, pipelines: Mapping[str, PipelineSection]
) -> list[str]:
    """The pipelines that read what a collector writes."""
    topics = [topic_of(name, section), *(f"{topic_of(name, section)}.{g}" for g in section.groups)]
    return [
        pipeline
        for pipeline, found in pipelines.items()
        if found.collector == name or any(map(_selection(found).reads, topics))
    ]


def tables_of(
    name: str, section: CollectorSection, pipelines: Mapping[str, PipelineSection]
) -> tuple[str, ...]:
    """Patterns of the tables that a collector reads: its own, or all that its pipelines take."""
    if section.tables is not None:
        return tuple(section.tables)
    found = (
        pattern
        for pipeline in readers(name, section, pipelines)
        for route in pipelines[pipeline].routes()
        for pattern in route.globs
    )
    return tuple(dict.fromkeys(found))


def _selection(pipeline: PipelineSection) -> TopicSelection:
    return TopicSelection(tuple(pipeline.topics), tuple(pipeline.exclude_topics), frozenset())

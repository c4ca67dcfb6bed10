"""Names that one section gives and another refers to: unusable ones, and those of nobody; groups
that two pipelines would share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from changes.formats import AUTO, FORMATS, NAMES
from changes.routes.routing import Route
from daemon.config.pipelines import PipelineSection
from databases.base.section import DatabaseSection, unfit_primary
from sparkwriter.sections import AnySink

LONGEST_NAME = 128
"""Files are named after a pipeline and what they hold, with 255 bytes for all of it."""


def unusable_names(sections: Mapping[str, Collection[str]]) -> Iterator[str]:
    """By kind of section the names that no command and no file could have."""
    for kind, names in sections.items():
        for name in names:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
                yield f"{kind}.{name}: a name is letters, digits, - and _, a letter first"
            elif len(name) > LONGEST_NAME:
                yield f"{kind}.{name}: a name has {LONGEST_NAME} characters at most"


def unknown_databases(
    pipelines: Mapping[str, PipelineSection], databases: Mapping[str, DatabaseSection]
) -> Iterator[str]:
    """Databases that pipelines and replicas name and that are not there."""
    known = ", ".join(sorted(databases)) or "none"
    for name, pipeline in pipelines.items():
        for key, database in pipeline.named_databases():
            if database not in databases:
                yield f"pipeline.{name}.{key}: there is no database {database!r}; have: {known}"
    for name, section in databases.items():
        if (why := unfit_primary(section, databases)) is not None:
            yield f"database.{name}.{why}"


def unknown_registries(
    pipelines: Mapping[str, PipelineSection], registries: Collection[str]
) -> Iterator[str]:
    """Registries that pipelines name and that are not there, or that their format has no use of."""
    known = ", ".join(sorted(registries)) or "none"
    for name, pipeline in pipelines.items():
        if pipeline.registry is None:
            continue
        if pipeline.registry not in registries:
            what = f"there is no registry {pipeline.registry!r}; have: {known}"
            yield f"pipeline.{name}.registry: {what}"
        if not _framed(pipeline.format):
            read_by = ", ".join(filter(_framed, NAMES))
            what = f"records of {pipeline.format} name no schema; those of {read_by} may"
            yield f"pipeline.{name}.registry: {what}"


def _framed(format_name: str) -> bool:
    return format_name == AUTO or FORMATS[format_name].framed


def unfit_routes(
    pipelines: Mapping[str, Sequence[Route]], sinks: Mapping[str, AnySink]
) -> Iterator[str]:
    """Routes to sinks that are not there, or whose options their sink does not take."""
    known = ", ".join(sorted(sinks))
    for name, routes in pipelines.items():
        for route in routes:
            sink = sinks.get(route.template.split(".")[0])
            if sink is None:
                yield f"pipeline.{name}: target {route.template!r} names no sink; have: {known}"
                continue
            try:
                sink.route_options(dict(route.options))
            except ValueError as error:
                yield f"pipeline.{name}: target {route.template!r}: {error}"


def shared_groups(groups: Mapping[str, str]) -> Iterator[str]:
    """Consumer groups that two pipelines would be in. ``groups``: by pipeline."""
    taken: dict[str, str] = {}
    for name, group in groups.items():
        other = taken.setdefault(group, name)
        if other != name:
            yield f"pipeline.{name}: group {group!r} is pipeline.{other}'s already"

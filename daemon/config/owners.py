"""Finds targets with two owners, by the routes' patterns, since no table is known yet; cuts of what
has none; and topics that are read and binlogd's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from changes.model.model import TargetName
from changes.routes.routing import Route, Router
from daemon.config.pipeline_parts import CutSection
from daemon.config.pipelines import PipelineSection
from daemon.config.sections import JobsSection
from sparkwriter.sections import AnySink


def unfit_targets(
    pipelines: Mapping[str, PipelineSection], sinks: Mapping[str, AnySink]
) -> Iterator[str]:
    """Targets with two owners, and what keeps a pipeline from making cuts of its targets."""
    routes = {name: section.routes() for name, section in pipelines.items()}
    yield from shared_targets(routes)
    yield from unfit_own_tables(pipelines, routes, sinks)


def shared_targets(pipelines: Mapping[str, Sequence[Route]]) -> Iterator[str]:
    """One line for each two pipelines whose routes could lead to the same target.

    A target has one owner: two would fence each other for ever.
    """
    claims = [
        (name, glob)
        for name, routes in pipelines.items()
        for route in routes
        for glob in target_globs(route)
    ]
    for i, (name, glob) in enumerate(claims):
        for other, other_glob in claims[:i]:
            if name != other and globs_meet(glob, other_glob):
                yield (
                    f"pipeline.{name}: its targets {glob!r} may be those of "
                    f"pipeline.{other} ({other_glob!r}): a target has one owner; "
                    "narrow include or change target; `binlogd check-config` shows what goes where"
                )


def target_owner(routers: Mapping[str, Router], name: str) -> str | None:
    """The pipeline of which a route leads to a target; None: no route does."""
    try:
        target = TargetName.parse(name)
    except ValueError:
        return None
    return next((p for p, router in routers.items() if router.reaches(target)), None)


def target_globs(route: Route) -> Iterator[str]:
    """The patterns of the targets that a route can lead to."""
    for pattern in route.globs:
        database, dot, table = pattern.partition(".")
        if not dot:
            database, table = ("*", "*") if pattern == "*" else (pattern, "*")
        yield route.template.replace("{database}", database).replace("{table}", table)


def globs_meet(one: str, two: str) -> bool:
    """Whether some name matches both patterns (``*`` and ``?``; a class counts as any one)."""
    one, two = (re.sub(r"\[[^\]]*\]", "?", glob) for glob in (one, two))
    states = {(0, 0)}
    seen: set[tuple[int, int]] = set()
    while states:
        i, j = states.pop()
        if (i, j) in seen:
            continue
        seen.add((i, j))
        if i == len(one) and j == len(two):
            return True
        a, b = one[i : i + 1], two[j : j + 1]
        if a == "*":
            states |= {(i + 1, j)} | ({(i, j + 1)} if b else set())
        if b == "*":
            states |= {(i, j + 1)} | ({(i + 1, j)} if a else set())
        if a and b and "*" not in (a, b) and (a == b or "?" in (a, b)):
            states.add((i + 1, j + 1))
    return False


# Tables of binlogd's own: what cuts can be made of, the table that lists them, that of counts.


def unfit_own_tables(
    pipelines: Mapping[str, PipelineSection],
    routes: Mapping[str, Sequence[Route]],
    sinks: Mapping[str, AnySink],
) -> Iterator[str]:
    """What keeps pipelines from making cuts, or from counting, one line each."""
    owners: dict[TargetName, str] = {}
    targets = {target for each in routes.values() for r in each for target in r.known_targets()}
    for name, section in pipelines.items():
        written = {route.template.split(".")[0] for route in routes[name]}
        found = []
        if section.cut_every is not None:
            yield from (f"pipeline.{name}.{why}" for why in _uncut(written, sinks, section.cuts))
            table = section.cuts_table
            if table is None:
                yield (
                    f"pipeline.{name}.cuts.table: the pipeline writes to "
                    f"{', '.join(sorted(written))}: say where its cuts are listed, such as "
                    f'"{min(written)}.binlogd.cuts"'
                )
            else:
                found.append((f"pipeline.{name}.cuts.table", table))
                if table.sink not in written:
                    at = f"pipeline.{name}.cuts.table: {str(table)!r}"
                    yield from (f"{at}: {why}" for why in _without_tags([table.sink], sinks))
        elif "cuts" in section.model_fields_set:
            yield f"pipeline.{name}.cuts: no cut is made without cut_every: set it, or neither"
        if section.counts is not None:
            found.append((f"pipeline.{name}.counts", TargetName.parse(section.counts)))
        for key, table in found:
            if (other := owners.setdefault(table, key)) != key:
                yield f"{key}: {str(table)!r} is {other}'s already: set another one for each"
            if table.sink not in sinks:
                yield f"{key}: {str(table)!r} names no sink; have: {', '.join(sorted(sinks))}"
            if table in targets:
                yield f"{key}: {str(table)!r} is a route's target: name another table"


def _uncut(written: Iterable[str], sinks: Mapping[str, AnySink], cuts: CutSection) -> Iterator[str]:
    """Sinks whose tables can't be cut as is asked for, by key."""
    moved = {name for name in written if name in sinks and sinks[name].transactions}
    databases = {name for name in moved if not sinks[name].tags}
    if cuts.atomic and not moved:
        yield (
            "cuts.atomic: it is for sinks that are databases, or whose catalog is one (JDBC), and "
            "the pipeline writes to none"
        )
    for why in _without_tags(set(written) - databases, sinks):
        yield f"cut_every: {why}"
    for name in sorted(databases if not cuts.atomic else ()):
        yield (
            f"cut_every: sink {name} keeps no former versions of its tables: with cuts.atomic = "
            "true they come from cut to cut in one transaction; or give its routes a pipeline of "
            "their own"
        )


def _without_tags(written: Iterable[str], sinks: Mapping[str, AnySink]) -> Iterator[str]:
    """Sinks that keep no former versions of their tables. Those that are not there are named by
    others."""
    for name in sorted(written):
        if name in sinks and not sinks[name].tags:
            yield (
                f"sink {name} is of kind {sinks[name].kind}, which keeps no former versions of its "
                'tables: cuts are made of sinks of kind "iceberg"; give its routes a pipeline of '
                "their own"
            )


# Topics of binlogd's own: dead letters, positions, notifications and signals.


def own_topics(pipelines: Iterable[PipelineSection], jobs: JobsSection) -> frozenset[str]:
    """The topics that binlogd writes, of all pipelines, that of its signals, and those of counts
    that others write beside the logs."""
    of_jobs = {jobs.notifications_topic, jobs.signals_topic}
    every = [*pipelines]
    of_pipelines = {t for p in every for t in (p.offset_topic, p.dead_letter_topic)}
    asked = (p.expected_counts for p in every if p.expected_counts is not None)
    counts = {each.topic for each in asked if "bootstrap.servers" not in each.kafka}
    return frozenset(topic for topic in of_jobs | of_pipelines | counts if topic)


def shared_topics(pipelines: Mapping[str, PipelineSection], jobs: JobsSection) -> Iterator[str]:
    """One line for each topic of jobs that a pipeline names, or that has two uses."""
    read = {topic: name for name, section in pipelines.items() for topic in section.topics}
    for key in ("notifications_topic", "signals_topic"):
        topic = getattr(jobs, key)
        if topic in read:
            yield f"jobs.{key}: {topic!r} is read by pipeline.{read[topic]}"
    if jobs.signals_topic and jobs.signals_topic == jobs.notifications_topic:
        yield "jobs.notifications_topic: is the signals_topic, too"


# Who says how many changes a source made.


def unfit_expected_counts(pipelines: Mapping[str, PipelineSection]) -> Iterator[str]:
    """What is wrong with who says how many there are, one line each."""
    for name, section in pipelines.items():
        expected = section.expected_counts
        if expected is None:
            continue
        at = f"pipeline.{name}.expected_counts"
        if expected.query and not section.named_databases():
            yield f'{at}.query: set database = "NAME", of a [database.NAME] that answers it'
        if expected.topic in section.topics and "bootstrap.servers" not in expected.kafka:
            yield f"{at}.topic: {expected.topic!r} is one of the topics that are read"


# Settings of Spark's that are binlogd's own.

SPARK_OWNED = {
    "spark.master": "spark.master is a key of its own, beside [spark.conf]",
    "spark.sql.session.timeZone": "instants are written in UTC",
    "spark.submit.deployMode": "the driver is this process's own",
}
"""Spark settings on which correctness rests. Setting them would have no effect, or a wrong one."""


def owned_spark(conf: Iterable[str], sinks: Mapping[str, AnySink]) -> Iterator[str]:
    """One line for each key of ``[spark.conf]`` that is binlogd's, or a sink's section's."""
    for key in conf:
        if key in SPARK_OWNED:
            yield f"spark.conf.{key}: is set by binlogd itself: {SPARK_OWNED[key]}"
        for name, sink in sinks.items():
            if (section := sink.owns(name, key)) is not None:
                yield f"spark.conf.{key}: belongs into [{section}]"

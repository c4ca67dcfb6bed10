"""``binlogd check-config``: what the start would refuse, what is unwise, what would be done."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, chosen_file, load_config
from daemon.config.config import Config
from settings.exit import Exit


def check_config(
    config: ConfigOption = None,
    connect: Annotated[
        bool, typer.Option(help="Also try broker, topics, catalogs, registries and databases.")
    ] = False,
) -> None:
    """Check a configuration: exit status 0 and what would be done, or 2 and a line per problem."""
    settings = load_config(config)
    file = chosen_file(config)
    # Late, as in `run`.
    from daemon.operations.checks import check

    redact = settings.redactor.text
    for warning in check.warnings(settings, file.path):
        print(f"binlogd: warning: {redact(f'{file.path}: {warning}')}", file=sys.stderr)
    matched: tuple[str, ...] = ()
    found = [f"{file.path}: {problem}" for problem in check.problems(settings)]
    if connect and not found:
        asked = _connected(settings)
        found, matched = asked.problems, asked.lines
        for warning in asked.warnings:
            print(f"binlogd: warning: {redact(warning)}", file=sys.stderr)
    for problem in found:
        print(f"binlogd: {redact(problem)}", file=sys.stderr)
    if found:
        sys.exit(Exit.UNUSABLE.value)
    if file.why:
        print(file)
    for line in (*check.plan(settings), *matched):
        print(redact(line))


@dataclass(frozen=True, slots=True)
class _Connected:
    """What others say: problems, warnings, and lines of the plan."""

    problems: list[str]
    warnings: list[str]
    lines: tuple[str, ...]


def _connected(settings: Config) -> _Connected:
    from daemon.config.pipeline_config import PipelineConfig
    from daemon.operations.checks.check import connect_problems
    from daemon.operations.checks.check_databases import check_databases
    from daemon.operations.checks.check_positions import adopted_positions
    from daemon.operations.checks.check_registries import silent_registries
    from daemon.operations.checks.check_rights import check_rights
    from daemon.operations.checks.check_topics import check_topics
    from sparkwriter.sinks import ConfiguredSinks

    pipelines = (PipelineConfig(settings, name) for name in settings.pipeline)
    together = {sink for pipeline in pipelines for sink in pipeline.together}
    found = [*connect_problems(settings, lambda: ConfiguredSinks().try_out(settings, together))]
    lacking, hidden = check_rights(settings)
    found += [*lacking, *silent_registries(settings)]
    databases, topics = check_databases(settings), check_topics(settings)
    found += databases.problems
    adopted = () if lacking else adopted_positions(settings)
    warnings = [*hidden, *databases.warnings, *topics.warnings, *adopted]
    return _Connected(found, warnings, topics.lines)

"""``binlogd dead-letters``: list, show, replay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, chosen_pipeline, load_config, make_console, refuse
from daemon.config.config import Config
from daemon.state.layout import check_layout

app = typer.Typer(help="Records that could not be applied.", no_args_is_help=True)

PipelineOption = Annotated[str | None, typer.Option(help="Of this pipeline alone.")]
TopicOption = Annotated[str | None, typer.Option(help="Records of this topic.")]
TableOption = Annotated[
    str | None, typer.Option(help="A pattern (*, ?) of the source's table, or of the target.")
]
ReasonOption = Annotated[
    str | None, typer.Option(help="unreadable, no-key, unfit, or a part of the error's text.")
]
SinceOption = Annotated[
    str | None, typer.Option(help="Stored since: 2026-01-31T00:00:00Z, or an age such as 2h.")
]


@app.command("list", epilog='Example: binlogd dead-letters list --table "shop.*" --since 2h')
def letters_list(
    config: ConfigOption = Path("config.toml"),
    pipeline: PipelineOption = None,
    topic: TopicOption = None,
    table: TableOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    state: Annotated[str | None, typer.Option(help="open or replayed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what is stored, a line for each letter. Status 1 where some can't be read."""
    from daemon.cli.dead_letters import list_letters
    from daemon.state.dead_letters.index import wanted_of

    settings, names = _letters_of(config, pipeline)
    try:
        wanted = wanted_of((), topic, table, reason, since, state)
    except ValueError as error:
        refuse(str(error))
    sys.exit(list_letters(settings, names, wanted, make_console(), as_json))


@app.command("show", epilog="Example: binlogd dead-letters show shop:0:4711")
def letters_show(
    letter: Annotated[str, typer.Argument(help="TOPIC:PARTITION:OFFSET, as list names it.")],
    config: ConfigOption = Path("config.toml"),
    pipeline: PipelineOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show one in full: key, value, headers, error, and what its format says of it now."""
    from daemon.cli.dead_letters import show_letter
    from daemon.state.dead_letters.index import wanted_of

    settings = load_config(config)
    names = list(settings.pipeline) if pipeline is None else [chosen_pipeline(settings, pipeline)]
    try:
        wanted = wanted_of((letter,))
    except ValueError as error:
        refuse(str(error))
    sys.exit(show_letter(settings, names, wanted, as_json))


def _letters_of(config: Path, pipeline: str | None) -> tuple[Config, list[str]]:
    """The chosen pipelines. Secrets are needed only to read a topic."""
    settings = load_config(config, lenient=True)
    names = list(settings.pipeline) if pipeline is None else [chosen_pipeline(settings, pipeline)]
    if any(settings.pipeline[name].dead_letter_topic is not None for name in names):
        settings = load_config(config)
    _check_layout(settings)
    return settings, names


def _check_layout(settings: Config) -> None:
    try:
        check_layout(settings.daemon.state_dir)
    except OSError as error:
        refuse(str(error))

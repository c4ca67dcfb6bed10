"""``binlogd dead-letters list``: prints letters for people and as JSON, a line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from daemon.cli.base.options import ConfigOption, chosen_pipeline, load_config, make_console, refuse
from daemon.cli.base.texts import one_line
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.index import (
    LetterFilter,
    Stored,
    Unreadable,
    filter_of,
    indexes,
)
from daemon.state.layout import check_layout
from settings.exit import Exit
from sources.base.letter import Mark, summary

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


def letters_list(
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    topic: TopicOption = None,
    table: TableOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    state: Annotated[str | None, typer.Option(help="open, replayed or discarded.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what is stored, a line for each letter. Status 1 where some can't be read."""
    settings, names = _letters_of(config, pipeline)
    try:
        letters = filter_of((), topic, table, reason, since, state)
    except ValueError as error:
        refuse(str(error))
    sys.exit(list_letters(settings, names, letters, make_console(), as_json))


def _letters_of(config: Path | None, pipeline: str | None) -> tuple[Config, list[str]]:
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


LONGEST_ERROR = 100
"""Characters of an error in the table. ``show`` and ``--json`` print it whole."""


def list_letters(
    config: Config, pipelines: Iterable[str], letters: LetterFilter, console: Console, as_json: bool
) -> int:
    """Print one line for each letter. Returns the exit status, 1 if some can't be read."""
    try:
        stored, damaged = picked(config, pipelines, letters)
    except Unreadable as error:
        return complain(config, str(error))
    if as_json:
        print(json_text([listed(each) for each in stored], indent=1))
    else:
        _print_table(console, stored)
    return Exit.PIPELINE_FAILED.value if damaged else Exit.OK.value


def picked(
    config: Config, pipelines: Iterable[str], letters: LetterFilter
) -> tuple[list[Stored], bool]:
    """The letters that pass, and whether some can't be read. Raises Unreadable."""
    opened = (PipelineConfig(config, name) for name in pipelines)
    found = list(indexes(opened, config.redactor.text))
    stored = [each for index in found for each in index.pick(letters)]
    return stored, any(index.damage for index in found)


def complain(config: Config, line: str) -> int:
    """Print why letters can't be read. Returns the exit status."""
    print(f"binlogd: {config.redactor.text(line)}", file=sys.stderr)
    return Exit.PIPELINE_FAILED.value


def listed(stored: Stored) -> dict[str, Any]:
    """A letter as the list has it in JSON."""
    letter, mark = stored.letter, stored.mark
    return {
        "id": letter.id.place,
        **summary(letter),
        "bytes": sum(len(part or b"") for part in (letter.key, letter.value)),
        "store": stored.store,
        "state": stored.state,
        "replayed": _marked(mark) if stored.state == "replayed" else None,
        "discarded": _marked(mark) if stored.state == "discarded" else None,
    }


def _marked(mark: Mark | None) -> dict[str, Any] | None:
    return None if mark is None else {"at": mark.at, "when": mark.document["when"]}


def _print_table(console: Console, stored: Iterable[Stored]) -> None:
    table = Table("pipeline", "letter", "stored", "table", "state", "reason", "error", box=None)
    count = 0
    for each in stored:
        letter = each.letter
        count += 1
        error = one_line(letter.error)
        if len(error) > LONGEST_ERROR:
            error = error[: LONGEST_ERROR - 1] + "…"
        texts = (
            letter.id.pipeline,
            letter.id.place,
            letter.when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
            letter.id.target or ", ".join(letter.tables) or "-",
            each.state,
            letter.reason,
            error,
        )
        table.add_row(*map(escape, texts))
    if count:
        console.print(table)
    console.print(f"{count} dead letter{'' if count == 1 else 's'}")

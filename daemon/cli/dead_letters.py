"""``binlogd dead-letters list`` and ``show``: print letters for people and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from changes.formats.engine.format import pack
from changes.formats.wire.frames import schemas_shown
from changes.model.printable import json_text
from daemon.cli.base.options import ConfigOption, chosen_pipeline, load_config, make_console, refuse
from daemon.cli.base.records import (
    explained_message,
    one_line,
    readable,
    shown,
    shown_by_routes,
    time_text,
)
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.command_schemas import command_schemas
from daemon.state.dead_letters.index import (
    LetterFilter,
    Stored,
    Unreadable,
    filter_of,
    indexes,
)
from daemon.state.layout import check_layout
from daemon.state.offset_transfer import format_of
from offsets.store import StoreError
from settings.exit import Exit
from sources.base.letter import Letter, Mark, summary

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


@app.command("show", epilog="Example: binlogd dead-letters show shop:0:4711")
def letters_show(
    letter: Annotated[str, typer.Argument(help="TOPIC:PARTITION:OFFSET, as list names it.")],
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show one in full: key, value, headers, error, and what its format says of it now."""
    settings = load_config(config)
    names = list(settings.pipeline) if pipeline is None else [chosen_pipeline(settings, pipeline)]
    try:
        letters = filter_of((letter,))
    except ValueError as error:
        refuse(str(error))
    sys.exit(show_letter(settings, names, letters, as_json))


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
        opened = (PipelineConfig(config, name) for name in pipelines)
        found = list(indexes(opened, config.redactor.text))
    except Unreadable as error:
        return _complain(config, str(error))
    stored = [each for index in found for each in index.pick(letters)]
    if as_json:
        print(json_text([_listed(each) for each in stored], indent=1))
    else:
        _print_table(console, stored)
    return Exit.PIPELINE_FAILED.value if any(index.damage for index in found) else Exit.OK.value


def show_letter(
    config: Config, pipelines: Iterable[str], letters: LetterFilter, as_json: bool
) -> int:
    """Print the letters of one record in full. Returns the exit status, 2 if there is none."""
    try:
        opened = (PipelineConfig(config, name) for name in pipelines)
        found = list(indexes(opened, config.redactor.text))
    except Unreadable as error:
        return _complain(config, str(error))
    stored = [each for index in found for each in index.pick(letters)]
    if not stored:
        ((source, offset),) = letters.places
        print(f"binlogd: no dead letter at {source}:{offset}", file=sys.stderr)
        return Exit.UNUSABLE.value
    documents = [full(config, each) for each in stored]
    if as_json:
        print(json_text(documents, indent=1))
    else:
        print("\n\n".join("\n".join(_lines(document)) for document in documents))
    return Exit.OK.value


def _complain(config: Config, line: str) -> int:
    print(f"binlogd: {config.redactor.text(line)}", file=sys.stderr)
    return Exit.PIPELINE_FAILED.value


# --- the list


def _listed(stored: Stored) -> dict[str, Any]:
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


# --- one in full


def full(config: Config, stored: Stored) -> dict[str, Any]:
    """Everything known about a letter, and what its format makes of it now."""
    letter, section = stored.letter, config.pipeline.get(stored.letter.id.pipeline)
    registry = None if section is None else config.registry_of(letter.id.pipeline)
    packed = pack(letter.key, letter.value, letter.headers)
    return {
        **_listed(stored),
        "key": readable(letter.key),
        "headers": [[name, readable(value)] for name, value in letter.headers],
        "value": readable(letter.value),
        **({} if letter.part is None else {"part": readable(letter.part)}),
        **({} if registry is None else {"schemas": schemas_shown(packed, registry)}),
        "decode": explained(config, letter),
    }


def explained(config: Config, letter: Letter) -> dict[str, Any]:
    """What ``binlogd decode`` prints for it, with the pipeline's present format and options."""
    try:
        pipeline = PipelineConfig(config, letter.id.pipeline)
        with command_schemas(pipeline.registry) as schemas:
            format_ = format_of(pipeline, None if schemas is None else schemas.registry)
            message = letter.message(format_)
            if schemas is not None and (missing := schemas.fetch([message])):
                return {"error": "; ".join(missing), "changes": []}
            return explained_message(shown_by_routes(format_, pipeline.router()), message)
    except StoreError as bad:
        return {"error": str(bad), "changes": []}


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for name in ("id", "pipeline", "tables", "target", "state", "store", "reason", "error"):
        value = document[name]
        text = ", ".join(value) if isinstance(value, list) else value
        yield _line(name, None if text is None else one_line(text))
    if document["replayed"] is not None:
        yield _line("replayed", f"as {document['replayed']['at']}, {document['replayed']['when']}")
    if document["discarded"] is not None:
        yield _line("discarded", document["discarded"]["when"])
    yield _line("stored", document["when"])
    yield _line("record's time", time_text(document["timestamp"]))
    if not document["in_log"]:
        yield _line("note", "the log had lost the record: its key and headers are not known")
    yield _line("key", shown(document["key"]))
    for name, value in document["headers"]:
        yield _line("header", f"{one_line(name)} = {shown(value)}")
    yield _line("value", shown(document["value"]))
    if "schemas" in document:
        yield _line("schemas", ", ".join(document["schemas"]))
    if "part" in document:
        yield _line("the target's part", shown(document["part"]))
    decoded = document["decode"]
    said = decoded["error"] or ("good" if decoded["changes"] else "no change")
    yield _line("decode says", one_line(said))
    for change in decoded["changes"]:
        yield f"  {json_text(change)}"


def _line(name: str, value: object) -> str:
    return f"{name + ':':19}{'-' if value in (None, '') else value}"

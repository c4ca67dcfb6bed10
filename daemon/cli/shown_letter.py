"""``binlogd dead-letters show``: prints a letter in full, with what its format makes of it now."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from changes.formats.engine.format import pack
from changes.formats.wire.frames import schemas_shown
from changes.model.printable import json_text
from daemon.cli.base.options import ConfigOption, chosen_pipeline, load_config, refuse
from daemon.cli.base.records import (
    explained_message,
    readable,
    shown,
    shown_by_routes,
)
from daemon.cli.base.texts import one_line, time_text
from daemon.cli.dead_letters import PipelineOption, complain, listed, picked
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.command_schemas import command_schemas
from daemon.state.dead_letters.index import LetterFilter, Stored, Unreadable, filter_of
from daemon.state.offset_transfer import format_of
from offsets.store import StoreError
from settings.exit import Exit
from sources.base.letter import Letter


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


def show_letter(
    config: Config, pipelines: Iterable[str], letters: LetterFilter, as_json: bool
) -> int:
    """Print the letters of one record in full. Returns the exit status, 2 if there is none."""
    try:
        stored, _ = picked(config, pipelines, letters)
    except Unreadable as error:
        return complain(config, str(error))
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


def full(config: Config, stored: Stored) -> dict[str, Any]:
    """Everything known about a letter, and what its format makes of it now."""
    letter, section = stored.letter, config.pipeline.get(stored.letter.id.pipeline)
    registry = None if section is None else config.registry_of(letter.id.pipeline)
    packed = pack(letter.key, letter.value, letter.headers)
    return {
        **listed(stored),
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

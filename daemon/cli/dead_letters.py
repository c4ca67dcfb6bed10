"""``binlogd dead-letters list`` and ``show``: print letters for people and as JSON."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from changes.formats.engine.format import RowChange
from changes.model.model import BadMessage
from changes.model.printable import json_text
from daemon.cli.decode import as_line
from daemon.config.config import Config
from daemon.state.dead_letters.index import (
    Stored,
    Unreadable,
    Wanted,
    indexes,
)
from daemon.state.offset_transfer import format_of
from offsets.store import StoreError
from settings.exit import Exit
from sources.base.letter import Letter, summary

LONGEST_ERROR = 100
"""Characters of an error in the table. ``show`` and ``--json`` print it whole."""


def list_letters(
    config: Config, pipelines: Iterable[str], wanted: Wanted, console: Console, as_json: bool
) -> int:
    """Print one line for each letter. Returns the exit status, 1 if some can't be read."""
    try:
        found = list(indexes(config, pipelines))
    except Unreadable as error:
        return _complain(config, str(error))
    stored = [each for index in found for each in index.pick(wanted)]
    if as_json:
        print(json_text([_listed(each) for each in stored], indent=1))
    else:
        _print_table(console, stored)
    return Exit.PIPELINE_FAILED.value if any(index.damage for index in found) else Exit.OK.value


def show_letter(config: Config, pipelines: Iterable[str], wanted: Wanted, as_json: bool) -> int:
    """Print the letters of one record in full. Returns the exit status, 2 if there is none."""
    try:
        found = list(indexes(config, pipelines))
    except Unreadable as error:
        return _complain(config, str(error))
    stored = [each for index in found for each in index.pick(wanted)]
    if not stored:
        ((source, offset),) = wanted.places
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
        "replayed": None if mark is None else {"at": mark.at, "when": mark.document["when"]},
    }


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
    letter = stored.letter
    return {
        **_listed(stored),
        "key": readable(letter.key),
        "headers": [[name, readable(value)] for name, value in letter.headers],
        "value": readable(letter.value),
        **({} if letter.part is None else {"part": readable(letter.part)}),
        "decode": explained(config, letter),
    }


def readable(value: bytes | None) -> dict[str, str] | None:
    """Bytes as text if they are UTF-8 text, else in base64. None for None."""
    if value is None:
        return None
    try:
        text = value.decode("utf-8")
        if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text):
            return {"text": text}
    except UnicodeDecodeError:
        pass  # not text
    return {"base64": base64.b64encode(value).decode("ascii")}


def explained(config: Config, letter: Letter) -> dict[str, Any]:
    """What ``binlogd decode`` prints for it, with the pipeline's present format and options."""
    try:
        format_ = format_of(config, letter.id.pipeline)
        changes = format_.explain(letter.message(format_))
    except (BadMessage, StoreError) as bad:
        return {"error": str(bad), "changes": []}
    misfits = [
        f"{change.table}: {change.misfit}"
        for change in changes
        if isinstance(change, RowChange) and change.misfit is not None
    ]
    return {
        "error": "; ".join(misfits) or None,
        "changes": [json.loads(as_line(change)) for change in changes],
    }


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for name in ("id", "pipeline", "tables", "target", "state", "store", "reason", "error"):
        value = document[name]
        shown = ", ".join(value) if isinstance(value, list) else value
        yield _line(name, None if shown is None else one_line(shown))
    if document["replayed"] is not None:
        yield _line("replayed", f"as {document['replayed']['at']}, {document['replayed']['when']}")
    yield _line("stored", document["when"])
    yield _line("record's time", _time(document["timestamp"]))
    if not document["in_log"]:
        yield _line("note", "the log had lost the record: its key and headers are not known")
    yield _line("key", _shown(document["key"]))
    for name, value in document["headers"]:
        yield _line("header", f"{one_line(name)} = {_shown(value)}")
    yield _line("value", _shown(document["value"]))
    if "part" in document:
        yield _line("the target's part", _shown(document["part"]))
    decoded = document["decode"]
    said = decoded["error"] or ("good" if decoded["changes"] else "no change")
    yield _line("decode says", one_line(said))
    for change in decoded["changes"]:
        yield f"  {json_text(change)}"


def one_line(text: str) -> str:
    """Text that is safe for a terminal: the record's author must not control it."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _line(name: str, value: object) -> str:
    return f"{name + ':':19}{'-' if value in (None, '') else value}"


def _shown(value: Mapping[str, str] | None) -> str:
    if value is None:
        return "none"
    return value["text"] if "text" in value else f"(base64) {value['base64']}"


def _time(time_ms: int | None) -> str:
    if time_ms is None:
        return "not known"
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")

"""``binlogd topics peek``: shows records of a topic, and what binlogd makes of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from changes.formats.as_target import AsTarget
from changes.formats.engine.format import Format, pack
from changes.model.printable import json_text, printable
from changes.routes.routing import Router
from daemon.cli.base.options import BrokerOption, ConfigOption, JsonOption, load_config, refuse
from daemon.cli.base.records import (
    explained_message,
    readable,
    shown,
    shown_by_routes,
)
from daemon.cli.base.texts import one_line, time_text
from daemon.cli.topics.reading import format_of_records, reader_of, topics_as
from daemon.cli.topics.stretch import Found, NotThere, look_up, parse_where
from daemon.state.command_schemas import CommandSchemas, command_schemas
from offsets.store import StoreError
from settings.counted import counted
from settings.exit import Exit
from sources.base.consumed import as_consumed
from sources.base.port import LogGone, LogUnreadable, NotAnswered, TopicMissing

COUNT = 10
"""Records that are shown where nobody says how many."""

LONGEST_VALUE = 1000
"""Characters of a value that is shown to people. ``--json`` has it whole."""

app = typer.Typer(help="Topics of the broker.", no_args_is_help=True)

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="WHERE",
        help="earliest, latest (the newest records), -N (the newest N), an offset, or a "
        "time: 2026-01-31T00:00:00Z, or an age such as 2h.",
    ),
]
PartitionOption = Annotated[int | None, typer.Option(min=0, help="Of this partition alone.")]
CountOption = Annotated[
    int | None, typer.Option(min=1, help="How many records at most: 10, or N from -N on.")
]
PipelineOption = Annotated[
    str | None, typer.Option(help="Read as this pipeline does, where several read the topic.")
]


@app.command("peek", epilog="Example: binlogd topics peek shop-binlog --from -5")
def topics_peek(
    topic: TopicArgument,
    begin: FromOption = "latest",
    partition: PartitionOption = None,
    count: CountOption = None,
    pipeline: PipelineOption = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show records of a topic, and what binlogd makes of each.

    Reads what is committed, joins no group, commits nothing, and ends where the log ends. Records
    are decoded as the pipeline that reads the topic does; where none does, their format is
    detected. Status 1 where some can't be decoded.
    """
    settings = None if broker else load_config(config)
    reads = None if settings is None else reader_of(settings, topic, pipeline)
    try:
        where = parse_where(begin, count or COUNT, datetime.now(UTC))
    except ValueError as error:
        refuse(f"--from {error}")
    log = topics_as(broker, settings, reads).log(topic)
    try:
        found = look_up(log, where, partition, count or where.last or COUNT)
        with command_schemas(reads.registry if reads else None) as schemas:
            reading = format_of_records(topic, reads, schemas, found)
            router = None if reads is None else reads.router()
            documents = [*_documents(reading, router, schemas, found)]
    except (NotAnswered, TopicMissing, LogUnreadable, LogGone, NotThere, StoreError) as error:
        hint = settings.kafka_hint if settings and getattr(error, "away", False) else ""
        refuse((settings.redactor.text if settings else str)(f"{error}{hint}"))
    _print(documents, as_json)
    bad = any(document["decode"]["error"] for document in documents)
    sys.exit(Exit.PIPELINE_FAILED.value if bad else Exit.OK.value)


# --- what binlogd makes of them


def _documents(
    reading: tuple[Format | None, str],
    router: Router | None,
    schemas: CommandSchemas | None,
    found: Found,
) -> Iterator[dict[str, Any]]:
    format_, said = reading
    target = None
    if format_ is not None:
        target = AsTarget(format_) if router is None else shown_by_routes(format_, router)
    for source, record in found:
        packed = pack(record.key, record.value, record.headers)
        missing = [] if schemas is None else schemas.fetch([packed])
        decode: dict[str, Any] = {"error": None, "changes": []}
        if missing:
            decode["error"] = "; ".join(missing)
        elif format_ is not None and target is not None:
            decode = explained_message(target, as_consumed(format_, source.topic, record))
        yield {
            "topic": source.topic,
            "partition": source.partition,
            "offset": record.offset,
            "timestamp": record.time_ms,
            "key": readable(record.key),
            "headers": [[name, readable(value)] for name, value in record.headers],
            "value": readable(record.value),
            "format": None if format_ is None else format_.name,
            "read_as": said,
            "decode": decode,
        }


# --- for people


def _print(documents: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json_text(documents, indent=1))
        return
    if not documents:
        print("binlogd: no record there", file=sys.stderr)
        return
    prefix = "read as" if documents[0]["format"] else "not decoded:"
    print(f"{prefix} {printable(documents[0]['read_as'])}")
    for document in documents:
        print("\n".join(_lines(document)))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    place = f"{document['topic']}:{document['partition']}:{document['offset']}"
    headers = "".join(
        f"  {one_line(name)} = {_short(value)}" for name, value in document["headers"]
    )
    yield ""
    yield f"{place}  {time_text(document['timestamp'])}  key: {_short(document['key'])}{headers}"
    decoded = document["decode"]
    for change in decoded["changes"]:
        yield f"  {json_text(change)}"
    if decoded["error"]:
        yield f"  bad: {one_line(decoded['error'])}"
    if not decoded["changes"] and (decoded["error"] or document["format"] is None):
        yield f"  value: {_short(document['value'])}"
    elif not decoded["changes"]:
        yield f"  no change; value: {_short(document['value'])}"


def _short(value: Mapping[str, str] | None) -> str:
    text = one_line(shown(value))
    if len(text) <= LONGEST_VALUE:
        return text
    more = len(text) - LONGEST_VALUE
    return f"{text[:LONGEST_VALUE]}… ({counted(more, 'character')} more; --json has it whole)"

"""``binlogd offsets where``: was a message of the log applied, and if not, where is it?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console, refuse
from daemon.cli.base.texts import time_text
from daemon.cli.topics.reading import format_of_records, reader_of, topics_as
from daemon.cli.topics.stretch import NotThere, Where, look_up
from daemon.cli.where.answer import InTarget, Meant, in_targets, letters_of, meant
from daemon.cli.where.search import Sought, located
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.command_schemas import command_schemas
from daemon.state.dead_letters.index import Unreadable
from daemon.state.recorded import recorded_snapshot
from offsets.position import TopicPartition
from offsets.recovery import PositionError, check_topic_ids
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.exit import Exit
from sources.base.letter import parse_place
from sources.base.port import LogGone, LogUnreadable, NotAnswered, TopicMissing

app = typer.Typer(help="What is recorded of positions.")

PlaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="TOPIC:PARTITION:OFFSET; with --gtid or --lsn TOPIC:PARTITION.",
    ),
]
GtidOption = Annotated[
    str | None, typer.Option(help="The last message of this transaction, where messages tell it.")
]
LsnOption = Annotated[
    int | None, typer.Option(min=0, help="The last message at or below this LSN, as a number.")
]
PipelineOption = Annotated[
    str | None, typer.Option(help="Which pipeline, where several read the topic.")
]


@app.command("where", epilog="Example: binlogd offsets where shop-binlog:0:4711")
def offsets_where(
    place: PlaceArgument,
    gtid: GtidOption = None,
    lsn: LsnOption = None,
    pipeline: PipelineOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say of a message, for each of its targets, whether it is in it, and if not, where it is.

    In it since which version; waiting; in the spill; a dead letter; passed over. By what is
    recorded, which is up to some seconds old. Status 0: all its targets have it, or it is for none;
    1: one lacks it, or its rows may differ; 2: there is no such message.
    """
    settings = load_config(config)
    try:
        sought = _sought(place, gtid, lsn)
        topic = sought.source.topic
        reads = reader_of(settings, topic, pipeline)
        if reads is None or not settings.topics_of(reads.name).reads(topic):
            who = "no pipeline reads" if pipeline is None else f"pipeline {pipeline} does not read"
            refuse(f"{who} {topic!r}")
        document = _answer(settings, reads, sought)
    except (NotAnswered, TopicMissing, LogUnreadable, LogGone, NotThere, PositionError) as error:
        hint = settings.kafka_hint if getattr(error, "away", False) else ""
        refuse(settings.redactor.text(f"{error}{hint}"))
    except (StoreError, Unreadable, OSError) as error:
        refuse(settings.redactor.text(str(error)))
    if as_json:
        print(json_text(document, indent=1))
    else:
        _print(document)
    lacks = document["unread"] or any(each["lacks"] for each in document["targets"])
    sys.exit(Exit.PIPELINE_FAILED.value if lacks else Exit.OK.value)


def _sought(place: str, gtid: str | None, lsn: int | None) -> Sought:
    try:
        if gtid is None and lsn is None:
            return Sought(*parse_place(place))
        if gtid is not None and lsn is not None:
            refuse("--gtid or --lsn, not both")
        return Sought(TopicPartition.parse(place), None, gtid, lsn)
    except ValueError as error:
        refuse(str(error))


NEWEST = 20
"""Records that are looked at to detect a topic's format."""

NO_RECORD = (
    "the log has no record there: it was removed, is a marker, or of a transaction that was taken "
    "back. So each target is shown as if the message were for it"
)


def _answer(settings: Config, reads: PipelineConfig, sought: Sought) -> dict[str, Any]:
    source = sought.source
    recorded = recorded_snapshot(reads).snapshot or Snapshot(reads.name, reads.group)
    log = topics_as(None, settings, reads).log(source.topic)
    log.reach()
    check_topic_ids(recorded, {source.topic: log.describe()[0]})
    newest = look_up(log, Where(last=NEWEST), source.partition, NEWEST)
    with command_schemas(reads.registry) as schemas:
        format_, said = format_of_records(source.topic, reads, schemas, newest)
        known = recorded.partitions.get(source)
        offset, record = located(log, sought, format_, 0 if known is None else known.frontier)
        if record is None:
            names = _filled_from(recorded, source)
            of = Meant(names, NO_RECORD, unread=not names)
        elif format_ is None:
            of = Meant((), said, unread=True)
        else:
            of = meant(format_, reads.router(), schemas, source.topic, record)
    letters = letters_of(reads, source, offset, settings.redactor.text)
    targets = dict.fromkeys((*of.targets, *filter(None, letters)))
    return {
        "topic": source.topic,
        "partition": source.partition,
        "offset": offset,
        "timestamp": None if record is None else record.time_ms,
        "pipeline": reads.name,
        "note": of.why,
        "unread": of.unread,
        "dead_letter": letters.get(""),
        "targets": [
            _shown(each)
            for each in in_targets(settings, recorded, source, offset, targets, letters)
        ],
    }


def _filled_from(recorded: Snapshot, source: TopicPartition) -> tuple[str, ...]:
    """The targets that have something of a partition, or keep it for later."""
    marked = (name for name, mark in recorded.targets.items() if source in mark.hwms)
    spilled = (name for name, mark in recorded.spills.items() if source in mark.lanes)
    return tuple(dict.fromkeys((*marked, *spilled)))


def _shown(one: InTarget) -> dict[str, Any]:
    since = one.since
    version = since and {
        "version": since.version,
        "time_ms": since.time_ms,
        "earlier_expired": since.expired,
    }
    return {
        "target": one.target,
        "stage": one.found.stage.value,
        "lacks": one.found.lacks,
        "since": version,
        "line": "; ".join(filter(None, (one.found.line, one.unknown))),
    }


def _print(document: Mapping[str, Any]) -> None:
    console = make_console()
    place = f"{document['topic']}:{document['partition']}:{document['offset']}"
    console.print(escape(f"{place}  {time_text(document['timestamp'])}"))
    if document["note"]:
        console.print(escape(document["note"]))
    if document["dead_letter"]:
        console.print(f"its dead letter is {document['dead_letter']}")
    rows = Table("target", "stage", "", box=None)
    for each in document["targets"]:
        rows.add_row(escape(each["target"]), each["stage"], escape(_line(each)))
    if document["targets"]:
        console.print(rows)


def _line(each: Mapping[str, Any]) -> str:
    since = each["since"]
    if since is None or each["lacks"]:
        return str(each["line"])
    when = f"snapshot {since['version']} at {time_text(since['time_ms'])}"
    if since["earlier_expired"]:
        return f"since before {when}, the oldest that is kept"
    return f"since {when}"

"""``binlogd produce``: sends the records of a file to a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO

import msgspec
import typer

from changes.formats.engine.format import Packed, unpack
from changes.model.printable import json_text
from daemon.cli.base.options import (
    BrokerOption,
    ConfigOption,
    JsonOption,
    load_config,
    quit_with,
    refuse,
)
from daemon.cli.message_files import keyed_record
from settings.counted import counted
from settings.exit import Exit
from sources.base.configuration import Setting
from sources.base.port import NotAnswered, Outgoing, TopicMissing
from sources.base.topics import NotSent
from sources.opening import open_cluster, topics_at

ANSWER_S = 20.0
"""For the broker to create a topic."""

STDIN = "-"

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A file with a record a line, - for stdin.")
]
TopicOption = Annotated[str, typer.Option(help="The topic that gets the records.")]
CreateOption = Annotated[
    bool, typer.Option("--create", help="Create the topic, with one partition, if it is missing.")
]
KeyFieldOption = Annotated[
    str | None, typer.Option(help="The member of each record that is its key, such as after.id.")
]
TabOption = Annotated[
    bool, typer.Option("--tab", help="Each line is KEY<TAB>VALUE; an empty value is a tombstone.")
]


class BadLine(Exception):
    """A line holds no record: one line."""


def produce(
    file: FileArgument,
    topic: TopicOption,
    create: CreateOption = False,
    key_field: KeyFieldOption = None,
    tab: TabOption = False,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send each line of a file of JSON to a topic: the records of a change stream, for a first try.

    All lines are checked before the first is sent. Ends when the broker has each record; status 1
    where some have not arrived. Records without a key go to partition 0, so they keep their order.
    """
    if key_field and tab:
        refuse("--key-field or --tab, not both")
    settings = None if broker else load_config(config)
    kafka: Mapping[str, Setting] = {"bootstrap.servers": broker or ""}
    kafka = kafka if settings is None else settings.kafka
    redact: Callable[[str], str] = str if settings is None else settings.redactor.text
    try:
        with closing(_opened(file)) as opened:
            lines = Lines(opened, key_field, tab)
            places = _sent(lines, topic, kafka, create)
    except BadLine as error:
        refuse(f"{_name(file)}:{error}; nothing was sent")
    except OSError as error:
        refuse(f"{_name(file)}: {error.strerror or error}")
    except (NotAnswered, TopicMissing) as error:
        hint = settings.kafka_hint if settings and isinstance(error, NotAnswered) else ""
        refuse(redact(f"{error}{hint}"))
    except NotSent as error:
        quit_with(redact(f"{_name(file)}: {error}"), Exit.PIPELINE_FAILED)
    _print(topic, places, as_json)


@dataclass(slots=True)
class Place:
    """What a partition got: how many records, and the offsets of the first and the last."""

    records: int
    first: int
    last: int


Places = dict[int, Place]


def _sent(lines: Lines, topic: str, kafka: Mapping[str, Setting], create: bool) -> Places:
    """Check all lines, then send them. Raises BadLine, NotAnswered, TopicMissing, NotSent."""
    places: Places = {}

    def arrived(partition: int, offset: int) -> None:
        place = places.setdefault(partition, Place(0, offset, offset))
        place.records, place.last = place.records + 1, offset

    for _ in lines.records():
        pass
    _look_for(topic, kafka, create)
    topics_at(kafka).sender().send((_outgoing(topic, one) for one in lines.records()), arrived)
    return places


def _name(file: str) -> str:
    return "<stdin>" if file == STDIN else file


def _opened(file: str) -> BinaryIO:
    """A file that can be read twice. Raises OSError."""
    if file != STDIN:
        opened: BinaryIO = Path(file).open("rb")  # noqa: SIM115
        if opened.seekable():
            return opened
    elif sys.stdin is None:
        raise OSError("is closed")
    else:
        opened = sys.stdin.buffer
    kept = TemporaryFile()  # noqa: SIM115
    copyfileobj(opened, kept)
    return kept


def _look_for(topic: str, kafka: Mapping[str, Setting], create: bool) -> None:
    """Raises NotAnswered, TopicMissing."""
    log = topics_at(kafka).log(topic)
    log.reach()
    if create:
        open_cluster(kafka, ANSWER_S).make(topic, {})
        return
    try:
        log.describe()
    except TopicMissing as error:
        raise TopicMissing(f"{error}; --create makes it") from error


def _outgoing(topic: str, record: Packed) -> Outgoing:
    """Without a key: partition 0, where all such records keep their order."""
    place = 0 if record.key is None else None
    return Outgoing(topic, place, record.key, record.value, record.headers)


# --- lines


class Lines:
    """The records of a file that can be read twice, each with its key as the options say."""

    def __init__(self, file: BinaryIO, key_field: str | None, tab: bool) -> None:
        self._file, self._key_field, self._tab = file, key_field, tab

    def records(self) -> Iterator[Packed]:
        """That of each line that is not empty, from the file's beginning. Raises BadLine, with the
        line's number."""
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            text = line.rstrip(b"\r\n")
            if number == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            if text.strip():
                try:
                    yield self._record(text)
                except BadLine as error:
                    raise BadLine(f"{number}: {error}") from error

    def _record(self, text: bytes) -> Packed:
        key: bytes | None = None
        if self._tab:
            key, separator, text = text.partition(b"\t")
            if not separator:
                raise BadLine("KEY<TAB>VALUE is required, and it has no tabulator")
            if not text.strip():
                return Packed(key, None)
        _check(text)
        if self._tab:
            return Packed(key, text)
        if self._key_field is not None:
            return Packed(_key(text, self._key_field), text)
        return unpack(keyed_record(text))


_syntax = msgspec.json.Decoder(msgspec.Raw)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _check(text: bytes) -> None:
    try:
        _syntax.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadLine(f"is no JSON: {error}") from error


def _key(text: bytes, field: str) -> bytes:
    """The member's value as a key: a string's contents, anything else as it is written."""
    found = text
    for name in field.split("."):
        try:
            found = bytes(_members.decode(found)[name])
        except (msgspec.DecodeError, KeyError) as error:
            raise BadLine(f"has no member {field!r} for its key (--key-field)") from error
    if found == b"null":
        raise BadLine(f"its key {field!r} is null (--key-field)")
    return msgspec.json.decode(found, type=str).encode() if found[:1] == b'"' else found


# --- what is said


def _print(topic: str, places: Places, as_json: bool) -> None:
    count = sum(place.records for place in places.values())
    if as_json:
        partitions = [
            {"partition": partition, **asdict(place)} for partition, place in sorted(places.items())
        ]
        print(json_text({"topic": topic, "records": count, "partitions": partitions}, indent=1))
        return
    print(f"{counted(count, 'record')} to {topic}")
    for partition, place in sorted(places.items()):
        print(f"  {topic}:{partition}: {place.records:,}, offsets {place.first} to {place.last}")

"""The text of a first configuration. Pure.

What was seen stands in comments, what was decided in keys. So a table that was not seen is read,
too, and a comment that is out of date does no harm.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from changes.model.printable import printable
from daemon.cli.init.look import SeenTopic
from settings.counted import counted

# Texts for a TOML file: strings, and comments with names of others. Pure.


def quote(text: str) -> str:
    """A basic string. JSON's escapes are TOML's; one character is not escaped there."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """A comment of one line, whatever the text: no name of a table can end it."""
    return f"# {printable(text)}"


# The sink's part of a first configuration, from one word: where the tables shall be. Pure.

STORES = {"s3": "org.apache.iceberg.aws.s3.S3FileIO", "hdfs": ""}
"""Schemes of a lake that is not a folder, with Iceberg's class for its files, empty: the usual."""


_NO_NAME = re.compile(r"\s*$|~|[\w+.-]+:(?!//)")
"""Nothing, a home that no shell has put in, a scheme with a slash too few: a folder of that name
would be made, and nobody would look for the tables there."""


class NotASink(Exception):
    """What was named is no place for tables: one line."""


@dataclass(frozen=True, slots=True)
class TablesPlace:
    """Where the tables shall be, as the flags say."""

    lake: str
    catalog: str = ""
    user: str = ""
    password: str = ""
    said: str = ""
    """The kind of sink, where the lake's name does not tell it."""

    @property
    def kind(self) -> str:
        """The kind of sink."""
        if self.said:
            return self.said
        if self.lake.startswith(("mysql:", "mariadb:", "postgresql:", "postgres:", "jdbc:")):
            return "jdbc"
        return "sqlite" if self.lake.endswith((".db", ".sqlite", ".sqlite3")) else "iceberg"


def sink_lines(place: TablesPlace) -> Iterator[str]:
    """``[sink.lake]``. Raises NotASink."""
    if place.kind != "jdbc" and _NO_NAME.match(place.lake):
        raise _not_a_place(place.lake)
    yield "[sink.lake]                        # targets begin with the sink's name"
    yield f"kind = {quote(place.kind)}"
    if place.kind == "jdbc":
        yield f"url = {quote(place.lake)}"
        if place.user:
            yield f"user = {quote(place.user)}"
        if place.password:
            yield f"password = {quote(place.password)}"
    elif place.kind == "sqlite":
        yield f"path = {quote(place.lake)}"
    else:
        yield ""
        yield "[sink.lake.catalog]                # any property of Iceberg's catalog"
        yield from _catalog(place)


def _not_a_place(lake: str) -> NotASink:
    known = ", ".join(f"{name}://" for name in (*STORES, "mysql", "postgresql"))
    return NotASink(
        f"{lake!r}: a folder, {known} or a file NAME.db is required; a name that begins with ~ or "
        "has a colon is written ./NAME"
    )


def _catalog(place: TablesPlace) -> Iterator[str]:
    scheme, separator, _ = place.lake.partition("://")
    if separator and scheme not in STORES:
        raise _not_a_place(place.lake)
    if place.catalog:
        if not place.catalog.startswith(("http://", "https://")):
            raise NotASink(f"--catalog {place.catalog!r}: give the address of a REST catalog")
        yield 'type = "rest"'
        yield f"uri = {quote(place.catalog)}"
        if io := STORES.get(scheme):
            yield f"io-impl = {quote(io)}"
    elif separator:
        raise NotASink(f"{place.lake}: --catalog names the REST catalog of its tables")
    else:
        yield 'type = "jdbc"                      # a file on this machine: for one daemon alone'
        yield f"uri = {quote(f'jdbc:sqlite:{place.lake}/catalog.db')}"
        yield '"jdbc.schema-version" = "V1"'
    yield f"warehouse = {quote(place.lake)}"


MOST_TABLES = 100
"""Tables that are listed. More make a file that nobody reads."""


def configuration(
    kafka: Mapping[str, str],
    place: TablesPlace,
    topics: Sequence[SeenTopic],
    state: str,
    entries: Sequence[str] = (),
    database: Sequence[str] = (),
    types: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """The whole file: one pipeline over all topics. ``entries``: the requested topics, if any is a
    pattern; ``topics`` are some of theirs. ``state`` is the folder for binlogd's own files.
    ``database``: the lines of the section ``[database.source]``, if there is one; ``types``: its
    columns' by table. Raises NotASink."""
    lines = [
        "#:schema ./binlogd.schema.json",
        "# Written by `binlogd init`. docs/configuration.md explains every key; editors check them",
        "# by their schema: binlogd config schema > binlogd.schema.json",
        "# Next: binlogd check-config --connect, then binlogd run.",
        "",
        "[daemon]",
        f"state_dir = {quote(f'{state}/state')}",
        f"staging_dir = {quote(f'{state}/staging')}",
        "",
        "[metrics]                          # the page, /metrics, /healthz, /readyz; empty: none",
        'listen = "127.0.0.1:9464"',
        "",
        "[kafka]                            # any librdkafka setting",
        *(f"{quote(key)} = {quote(value)}" for key, value in kafka.items()),
        "",
        *sink_lines(place),
    ]
    if database:
        lines += ["", *database]
    lines += ["", *_pipeline(entries or [topic.topic for topic in topics], topics, types)]
    return "\n".join(lines) + "\n"


def pipeline_name(topic: str) -> str:
    """A name for the pipeline: the topic's or the pattern's, as far as a name may hold it."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", topic).strip("-")
    return plain if re.match("[A-Za-z]", plain) else f"p-{plain}".rstrip("-")


def database_lines(url: str, user: str, password: str) -> Iterator[str]:
    """``[database.source]``. ``password``: a reference; empty: none."""
    yield "[database.source]                  # its tables' types, rows for `tables load`"
    yield f"url = {quote(url)}"
    yield f"user = {quote(user)}"
    if password:
        yield f"password = {quote(password)}"


def _pipeline(
    entries: Sequence[str], topics: Sequence[SeenTopic], types: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    name = pipeline_name(entries[0])
    yield f"[pipeline.{name}]"
    yield f"topics = [{', '.join(map(quote, entries))}]"
    yield from _format(topics)
    for topic in topics:
        yield from _seen(topic)
    if types:
        yield 'database = "source"'
    yield 'start = "earliest"                 # where no position is recorded yet'
    if not types:
        yield 'include = ["*"]                    # DATABASE.TABLE, * and ? allowed'
        yield "# exclude = []"
        yield 'target = "lake.{database}.{table}"'
    yield 'on_refused_target = "quarantine"   # a table that its target refuses stops no other'
    yield '# on_bad_record = "dead-letter"    # a record that can\'t be read stops the pipeline'
    for topic in topics:
        yield from _without_key(topic)
        yield from _without_types(topic, types)
        yield from _several_partitions(topic)
    if types:
        yield from _routes(name, types)


def _routes(name: str, types: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """One for each table with types, and one for all others."""
    yield ""
    yield f"[[pipeline.{name}.route]]"
    yield 'tables = ["*"]                     # DATABASE.TABLE, * and ? allowed'
    yield f"exclude = [{', '.join(quote(glob.escape(table)) for table in types)}]"
    yield 'target = "lake.{database}.{table}"'
    for table, columns in types.items():
        yield ""
        yield f"[[pipeline.{name}.route]]          # its messages name no types: the database does"
        yield f"tables = [{quote(glob.escape(table))}]"
        yield 'target = "lake.{database}.{table}"'
        words = ", ".join(f"{quote(column)} = {quote(said)}" for column, said in columns.items())
        yield f"types = {{ {words} }}"


def _format(topics: Sequence[SeenTopic]) -> Iterator[str]:
    """That of all topics whose format is known, where it is one."""
    known = {topic.format for topic in topics if topic.format is not None}
    for topic in topics:
        if topic.format is None:
            yield comment(f"The format of {topic.topic} could not be detected: {topic.why}.")
    if len(known) == 1:
        yield f"format = {quote(known.pop())}"
    else:
        yield "# Each topic's format is detected from what comes."
        yield 'format = "auto"'


def _seen(topic: SeenTopic) -> Iterator[str]:
    if topic.format is None:
        return
    records = counted(topic.records, "record was", "records were")
    yield comment(f"{topic.topic}: {records} read, from both ends of the log. Tables:")
    for table, seen in [*topic.tables.items()][:MOST_TABLES]:
        key = f"key {', '.join(seen.keys)}" if seen.keys else "no key"
        yield comment(f"  {table}: {key}, {counted(seen.changes, 'change')}")
    if len(topic.tables) > MOST_TABLES:
        yield comment(f"  and {len(topic.tables) - MOST_TABLES:,} more")
    if topic.bad:
        yield comment(
            f"{counted(topic.bad, 'record')} can't be read, for example {topic.bad_example}"
        )


def _without_key(topic: SeenTopic) -> Iterator[str]:
    tables = [name for name, seen in topic.tables.items() if not seen.keys]
    if not tables:
        return
    yield "# Tables whose messages name no key: exclude them, or give them routes instead of"
    yield '# target, with keys = ["COLUMN"], or with mode = "append" for a log of their changes:'
    for name in tables[:MOST_TABLES]:
        yield comment(f"  {name}")


def _without_types(topic: SeenTopic, types: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    tables = [name for name, seen in topic.tables.items() if seen.texts and name not in types]
    if not tables:
        return
    yield "# Messages of these name no types, so each column will be text. Declare some in routes"
    yield '# (types = {"COLUMN" = "TYPE"}); `binlogd init --database` takes them from a database:'
    for name in tables[:MOST_TABLES]:
        yield comment(f"  {name}")


def _several_partitions(topic: SeenTopic) -> Iterator[str]:
    tables = [name for name, seen in topic.tables.items() if len(seen.partitions) > 1]
    if tables:
        yield "# Changes of these come in several partitions. Rows with keys have no order between"
        yield "# partitions: have each table written into one, or see docs/ill.md:"
        for name in tables[:MOST_TABLES]:
            yield comment(f"  {name}")

"""``binlogd init``: asks, or takes flags; looks at the topics; writes a configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from changes.model.printable import printable
from daemon.cli.base.address import BadAddress, parse_address
from daemon.cli.base.options import refuse
from daemon.cli.init.look import NothingSeen, SeenTopic, look_at
from daemon.cli.init.text import NotASink, TablesPlace, configuration, database_lines
from daemon.cli.init.types import Types, types_of
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from databases.base.errors import DatabaseError
from settings.counted import counted
from settings.shell import quoted
from sources.base.port import NotAnswered, TopicMissing
from sources.opening import open_source

MOST_TOPICS = 20
"""Topics that are looked at, where a pattern takes more."""

BrokerOption = Annotated[
    str | None, typer.Option(help="HOST:PORT of a Kafka broker; several with commas.")
]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A topic with changes, or a pattern that begins with ^; may be given several times."
    ),
]
LakeOption = Annotated[
    str | None,
    typer.Option(
        help="Where the tables shall be: a folder (Iceberg), s3://BUCKET/PATH, FILE.db "
        "(SQLite), postgresql://HOST/DATABASE, mysql://HOST/."
    ),
]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="A librdkafka setting; a secret as KEY='${file:/PATH}'."
    ),
]
DatabaseOption = Annotated[
    str,
    typer.Option(
        help="Where messages name no types: the database that knows them, as "
        "mysql://USER@HOST/ or postgresql://USER@HOST/DATABASE."
    ),
]
PasswordOption = Annotated[
    Path | None, typer.Option(help="The file that holds this user's password.")
]


def init(
    broker: BrokerOption = None,
    topic: TopicOption = None,
    lake: LakeOption = None,
    catalog: Annotated[
        str, typer.Option(help="The Iceberg REST catalog of a lake: http://HOST:PORT.")
    ] = "",
    user: Annotated[str, typer.Option(help="The user of a database as the lake.")] = "",
    password_file: PasswordOption = None,
    kafka: KafkaOption = None,
    database: DatabaseOption = "",
    database_password_file: PasswordOption = None,
    state: Annotated[str, typer.Option(help="The folder for binlogd's own files.")] = "var",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file that is written; never replaced.")
    ] = Path("config.toml"),
) -> None:
    """Write a first configuration: ask what no flag says, look at the topics, write the file."""
    if os.path.lexists(output):
        output = _another(output)
    settings = {"bootstrap.servers": _said(broker, "--broker", "Kafka broker (HOST:PORT)")}
    settings |= dict(_setting(text) for text in kafka or ())
    topics = topic or _said(None, "--topic", "Topics").replace(",", " ").split()
    where = _said(
        lake,
        "--lake",
        "Where shall the tables be (folder, s3://, FILE.db, mysql://, postgresql://)",
    )
    password = "" if password_file is None else f"${{file:{password_file.absolute()}}}"
    place = TablesPlace(where, catalog, user, password)
    source = _database(database, database_password_file) if database else []
    text = partial(configuration, settings, place, state=state, database=source)
    for line in _write(output, text, list(dict.fromkeys(topics))):
        print(printable(line))
    print(f"{output} is written. Next: binlogd check-config --connect --config {quoted(output)}")


def on_a_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def _another(taken: Path) -> Path:
    """A free name beside one that is taken: asked for, or offered where nobody can be asked."""
    offered = next(
        name
        for number in count(2)
        if not os.path.lexists(name := taken.with_stem(f"{taken.stem}-{number}"))
    )
    if not on_a_terminal():
        refuse(f"{taken} exists already, and is not replaced: --output {quoted(offered)} is free")
    said = Path(typer.prompt(f"{taken} exists already, and is not replaced. Write", str(offered)))
    return _another(said) if os.path.lexists(said) else said


def _database(url: str, password_file: Path | None) -> list[str]:
    try:
        address = parse_address(url, "--database")
    except BadAddress as error:
        refuse(str(error))
    password = "" if password_file is None else f"${{file:{password_file.absolute()}}}"
    return list(database_lines(address.url, address.user, password))


def _write(output: Path, text: Callable[..., str], topics: Sequence[str]) -> list[str]:
    """Look at the topics by a draft of the file, then write the file. Returns what was seen, in
    lines. ``text``: the file's, of topics that were seen, as a first argument by name."""
    draft = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        config = _drafted(draft, text(topics=[], entries=topics))
        seen = _look(config)
        types, notes = types_of(config, seen) if config.database else ({}, [])
        _drafted(draft, text(topics=seen, entries=topics, types=types))
        os.link(draft, output)  # unlike a rename it replaces nothing
        return [*(_summary(topic, types) for topic in seen), *notes]
    except NotASink as error:
        refuse(str(error))
    except DatabaseError as error:
        refuse(f"--database: {error}")
    except ConfigError as error:
        refuse("; ".join(line.replace(str(draft), str(output)) for line in error.problems))
    except OSError as error:
        refuse(f"{output} can't be written: {error.strerror or error}")
    finally:
        draft.unlink(missing_ok=True)


def _said(flag: str | None, name: str, question: str) -> str:
    """What a flag says, or an answer."""
    if flag is not None:
        return flag
    if not on_a_terminal():
        refuse(f"{name} is required: there is no terminal to ask on")
    return str(typer.prompt(question))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        refuse(f"--kafka {text!r}: KEY=VALUE is required")
    return key.strip(), value


def _drafted(path: Path, text: str) -> Config:
    """Write the file, for its owner alone, and read it as every command does. Raises ConfigError,
    OSError."""
    with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
        file.write(text)
    return load(path)


def _look(config: Config) -> list[SeenTopic]:
    """Those that are named, and some of those that patterns match."""
    (name,) = config.pipeline
    source, names = open_source(config, name), config.topics_of(name).names
    try:
        there = sorted(source.topic_ids(), key=lambda topic: (topic not in names, topic))
        if not there:
            refuse("no topic matches: " + ", ".join(config.pipeline[name].topics))
        return [look_at(source, topic) for topic in there[: max(MOST_TOPICS, len(names))]]
    except (NotAnswered, TopicMissing, NothingSeen) as error:
        refuse(config.redactor.text(str(error)))


def _summary(seen: SeenTopic, types: Types) -> str:
    if seen.format is None:
        return f"{seen.topic}: the format could not be detected, {seen.why}: format = auto"
    tables = f"{counted(len(seen.tables), 'table')} in {counted(seen.records, 'record')}"
    keyless = sum(not table.keys for table in seen.tables.values())
    more = f", {keyless:,} of them without a key" if keyless else ""
    texts = sum(table.texts and name not in types for name, table in seen.tables.items())
    more += f", {texts:,} of them with text columns alone" if texts else ""
    typed = sum(name in types for name in seen.tables)
    more += f", {typed:,} of them with the database's types" if typed else ""
    bad = f", {counted(seen.bad, 'record')} can't be read" if seen.bad else ""
    return f"{seen.topic}: {seen.format}, {tables}{more}{bad}"

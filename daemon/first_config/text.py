"""The text of a first configuration. Pure.

What was seen stands in comments, what was decided in keys. So a table that was not seen is read,
too, and a comment that is out of date does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from daemon.first_config.look import SeenTopic
from daemon.first_config.sinks import Place, sink_lines
from daemon.first_config.toml import comment, quote

MOST_TABLES = 100
"""Tables that are listed. More make a file that nobody reads."""


def configuration(
    kafka: Mapping[str, str], place: Place, topics: Sequence[SeenTopic], state: str
) -> str:
    """The whole file. ``state`` is the folder for binlogd's own files. Raises NotASink."""
    lines = [
        "# Written by `binlogd init`. docs/configuration.md explains every key.",
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
    names = pipeline_names([topic.topic for topic in topics])
    for name, topic in zip(names, topics, strict=True):
        lines += ["", *_pipeline(name, topic)]
    return "\n".join(lines) + "\n"


def pipeline_names(topics: Sequence[str]) -> list[str]:
    """A name for each topic's pipeline: the topic's, as far as a name may hold it. All differ."""
    found: list[str] = []
    for topic in topics:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", topic).strip("-")
        base = plain if re.match("[A-Za-z]", plain) else f"p-{plain}".rstrip("-")
        name, number = base, 2
        while name in found:
            name, number = f"{base}-{number}", number + 1
        found.append(name)
    return found


def _pipeline(name: str, topic: SeenTopic) -> Iterator[str]:
    yield f"[pipeline.{name}]"
    yield f"topics = [{quote(topic.topic)}]"
    yield from _format(topic)
    yield from _seen(topic)
    yield 'start = "earliest"                 # where no position is recorded yet'
    yield 'include = ["*"]                    # DATABASE.TABLE, * and ? allowed'
    yield "# exclude = []"
    yield 'target = "lake.{database}.{table}"'
    yield 'on_refused_target = "quarantine"   # a table that its target refuses stops no other'
    yield '# on_bad_record = "dead-letter"    # a record that can\'t be read stops the pipeline'
    yield from _without_key(topic)
    yield from _several_partitions(topic)


def _format(topic: SeenTopic) -> Iterator[str]:
    if topic.format is not None:
        yield f"format = {quote(topic.format)}"
        return
    yield comment(f"The format could not be told: {topic.why}. It is detected from what comes.")
    yield 'format = "auto"'


def _seen(topic: SeenTopic) -> Iterator[str]:
    if topic.format is None:
        return
    yield comment(f"{topic.records:,} records were read, from both ends of the log. Tables:")
    for table, seen in [*topic.tables.items()][:MOST_TABLES]:
        key = f"key {', '.join(seen.keys)}" if seen.keys else "no key"
        yield comment(f"  {table}: {key}, {seen.changes:,} changes")
    if len(topic.tables) > MOST_TABLES:
        yield comment(f"  and {len(topic.tables) - MOST_TABLES:,} more")
    if topic.bad:
        yield comment(f"{topic.bad:,} records can't be read, for example {topic.bad_example}")


def _without_key(topic: SeenTopic) -> Iterator[str]:
    tables = [name for name, seen in topic.tables.items() if not seen.keys]
    if not tables:
        return
    yield "# Tables whose messages name no key: exclude them, or give them routes instead of"
    yield '# target, with keys = ["COLUMN"], or with mode = "append" for a log of their changes:'
    for name in tables[:MOST_TABLES]:
        yield comment(f"  {name}")


def _several_partitions(topic: SeenTopic) -> Iterator[str]:
    tables = [name for name, seen in topic.tables.items() if len(seen.partitions) > 1]
    if tables:
        yield "# Changes of these come in several partitions. Rows with keys have no order between"
        yield "# partitions: have each table written into one, or see docs/operations.md:"
        for name in tables[:MOST_TABLES]:
            yield comment(f"  {name}")

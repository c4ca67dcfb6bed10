"""The columns that the stream has shown of a target lately, and what a table has beside them.

A reader of the log may leave columns out, or call them otherwise. A load would bring what the
stream never changes, and lack what it does: so the table's columns are compared with those of the
target and of the log's last messages before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge

from changes.formats import TopicFormats, make_format
from changes.formats.engine.format import Format
from changes.model.model import (
    AddColumn,
    BadMessage,
    BadRecord,
    ChangeColumn,
    Ddl,
    DropColumn,
    RenameColumn,
)
from changes.model.printable import json_text
from changes.routes.routing import RouteConflict, Router
from changes.routes.shaping.shape import Pairs, Shape
from changes.routes.shaping.statements import needs
from daemon.operations.engine.port import Look
from daemon.operations.replay.keys import AffectedTarget, affected_targets, decoder_of, statements
from offsets.position import TopicPartition
from sources.base.consumed import as_consumed, topics_format
from sources.base.port import LogGone, LogRecord, LogUnreadable

SAMPLE = 500
"""Messages that are looked at, at the end of each partition: some hundredths of a second."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the last messages tell of one target. ``columns``: by the source's names, as they are.

    ``whole``: a row with all of its columns was among them. ``rows``: any row was. ``unread``: a
    statement about the table that can't be read, and no whole row after it.
    """

    columns: frozenset[str] = frozenset()
    whole: bool = False
    rows: bool = False
    unread: bool = False

    def within(self, shape: Shape) -> Shown:
        """Of the columns those that a route shows, or computes with."""
        return replace(self, columns=frozenset(n for n in self.columns if needs(shape, n)))

    def row(self, columns: Iterable[str], whole: bool) -> Shown:
        """After a row's message."""
        if whole:
            return Shown(frozenset(columns), whole=True, rows=True)
        return replace(self, columns=self.columns.union(columns), rows=True)

    def after(self, said: _Row | Ddl) -> Shown:
        """After a message."""
        return self.statement(said) if isinstance(said, Ddl) else self.row(said.columns, said.whole)

    def statement(self, ddl: Ddl) -> Shown:
        """After a statement."""
        if ddl.refused is not None or ddl.unread is not None:
            return Shown(unread=True)
        columns = {name.lower(): name for name in self.columns}
        for step in ddl.steps:
            match step:
                case AddColumn(column):
                    columns[column.name.lower()] = column.name
                case DropColumn(name):
                    columns.pop(name.lower(), None)
                case RenameColumn(old, new):
                    columns = _renamed(columns, old, new)
                case ChangeColumn(old, column):
                    columns = _renamed(columns, old, column.name)
                case _:
                    continue  # it is about no column's name
        return replace(self, columns=frozenset(columns.values()))


NOTHING = Shown()


def _renamed(columns: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    kept = {lower: name for lower, name in columns.items() if lower != old.lower()}
    return kept if len(kept) == len(columns) else {**kept, new.lower(): new}


def shown_columns(
    look: Look, pipeline: str, targets: Collection[str], parts: Collection[str] = ()
) -> Mapping[str, Shown]:
    """By target, what the log's last messages tell. Raises NotAnswered, StoreError.

    ``parts``: targets of tables whose inserts may lack columns that took their default (MINIMAL).

    Of several partitions the messages are taken in the order of their times: one that has been
    quiet for long does not tell what the table's columns are.
    """
    section = look.config.pipeline[pipeline]
    detected = look.snapshot(pipeline).formats
    topics = TopicFormats(detected)
    format_ = make_format(section.format, look.config.format_options(pipeline), topics)
    router = Router(look.config.routes(pipeline))
    source = look.source(pipeline)
    questions, reader = source.questions(), source.reader()
    told: list[list[_Told]] = []
    marks = questions.watermarks(questions.partitions(sorted(source.topic_ids())))
    for partition, mark in marks.items():
        first = max(mark.low, mark.high - SAMPLE)
        named = topics_format(format_, partition.topic)
        whole = detected.get(partition.topic, section.format).startswith("debezium")
        read = _Messages(named, router, whole, frozenset(targets), [], frozenset(parts))
        told.append(read.told)
        try:
            for record in reader.read(partition, first, mark.high - 1) if mark.high > first else ():
                read.add(partition, record)
        except (LogGone, LogUnreadable):
            continue  # of the others something is known
    found = dict.fromkeys(targets, NOTHING)
    for each in merge(*told, key=lambda one: one.time_ms):
        found[each.target] = found[each.target].after(each.said)
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    """A row's columns; ``whole``: all that it has."""

    columns: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class _Told:
    """What a message tells of a target. ``time_ms``: the log's, Unix time in milliseconds."""

    time_ms: int
    target: str
    said: _Row | Ddl


@dataclass(frozen=True, slots=True)
class _Messages:
    """Of one partition. ``whole``: updates have all columns, too."""

    format: Format
    router: Router
    whole: bool
    targets: frozenset[str]
    told: list[_Told]
    parts: frozenset[str]

    def add(self, source: TopicPartition, record: LogRecord) -> None:
        """Take in what a message tells of these targets. One that can't be read tells nothing: the
        stream reports it by itself."""
        try:
            value = as_consumed(self.format, source.topic, record)
            for part in affected_targets(self.format, self.router, value):
                if part.target in self.targets:
                    for said in self._said(part, source.partition, record.offset):
                        self.told.append(_Told(record.time_ms or 0, part.target, said))
        except (BadMessage, BadRecord, RouteConflict):
            return

    def _said(self, part: AffectedTarget, partition: int, offset: int) -> Iterator[_Row | Ddl]:
        if part.ddl:
            yield from statements(self.format, self.router, part)
            return
        changes = decoder_of(self.format, part.route).decode(partition, [offset], [part.value])
        if changes is not None and changes.begins != "D":  # which may have the key alone
            names = tuple(column.name for column in changes.schema.columns)
            inserted = changes.begins == "I" and str(part.target) not in self.parts
            yield _Row(names, whole=self.whole or inserted)


def unlike(
    table: Iterable[str], target: Iterable[str] | None, shown: Shown, renames: Pairs = ()
) -> Iterator[str]:
    """Why a table's columns can't be those of its target: one line each, by name.

    ``table``: those that are read of the source, by the stream's names. ``target``: what the target
    has, by the same; None where it is not there, or not known here. ``renames``: the route's
    ``reader_renames``.
    """
    database_names = {new.lower(): old for old, new in renames}
    own = {name.lower(): name for name in table}
    streamed = {name.lower(): name for name in shown.columns}
    beside = {lower: name for lower, name in streamed.items() if lower not in own}
    known = streamed.keys() | {name.lower() for name in target or ()}
    may_lack = shown.unread or (shown.rows and not shown.whole)
    if not may_lack and (target is not None or shown.rows):
        names = {**{name.lower(): name for name in target or ()}, **streamed}
        others = [name for lower, name in names.items() if lower not in own]
        for lower, name in own.items():
            if lower not in known:
                yield _left_out(name, database_names.get(lower), others)
    if shown.whole:
        yield from map(_added, beside.values())


def _left_out(name: str, old: str | None, others: Iterable[str]) -> str:
    """``old``: the database's name, where the route's ``reader_renames`` gives it this one."""
    own = name if old is None else old
    for other in others:
        if old is not None and other.lower() == old.lower():
            return f"the stream has the column {old} by its own name: no `reader_renames` of it"
        if _is_made_of(other, name) or _is_made_of(other, own):
            return (
                f"the table's column {own} is {other} in the stream: it would be NULL in each row "
                f"that is loaded. Say so in the route: `reader_renames = {{ {json_text(own)} = "
                f"{json_text(other)} }}`, or leave it out by `columns`"
            )
    if old is not None:
        return (
            f"reader_renames: neither the target nor the stream's last messages have the column "
            f"{name}, which is to be the table's {old}. Give it the stream's name, or leave it out "
            "by `columns` in the route"
        )
    return (
        f"the table has the column {name}, which neither the target nor the stream's last messages "
        "have: its values would never change. Leave it out by `columns` in the route; if it is "
        "new, change a row of the table, so that the stream shows it"
    )


def _added(name: str) -> str:
    return (
        f"the stream has the column {name}, which the table has not: it would be NULL in each row "
        "that is loaded. Leave it out by `columns` or `drop_columns` in the route; if the table "
        "has lost it, change a row, so that the stream shows it"
    )


def _is_made_of(streamed: str, name: str) -> bool:
    """Whether a reader may have made one name of the other, whichever signs it replaces and letters
    it raises. One that writes ASCII alone replaces other letters, too: what is left must tell."""
    left, had = ("".join(filter(str.isalnum, text.lower())) for text in (streamed, name))
    if streamed.isascii():
        had = re.sub("[^a-z0-9]", "", had)
    return left == had != ""

"""A format whose messages hold rows: decoders and explanations are the engine's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from changes.formats.engine.decoder import TableEngine
from changes.formats.engine.explain import explain_image
from changes.formats.engine.format import Format, RowChange, Statement, TableDecoder
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.model.model import BadMessage, ColumnTypes, FormatOptions, Head, Kind, Mode, TableName


class RowFormat(Format):
    """A format whose messages hold rows of one table each, or statements."""

    @abstractmethod
    def rows(self, *, placed: bool = False) -> ImageRows:
        """Make the reader of rows for one decoder. ``placed``: its images have positions."""

    def moment(self, value: bytes) -> int | None:
        """When a message's change happened, in milliseconds, for people; raises Refused."""
        return None

    def header(self, value: bytes) -> tuple[TableName, str]:
        """The table and the text of a statement in which ``ddl`` finds none; raises Refused."""
        raise Refused("a message of no statement")

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        head = self.peek(value)
        if value is None or head.kind is Kind.NOTHING:
            return ()
        table = head.table
        try:
            ts_ms = self.moment(value)
            if table is None:
                found = [Statement(ddl.table, ddl.sql, ts_ms) for ddl in self.ddl(value)]
                return tuple(found) or (Statement(*self.header(value), ts_ms),)
            rows, options = self.rows(), self._options
            images = list(rows.images(value))
            return tuple(explain_image(table, each, rows, options, ts_ms) for each in images)
        except Refused as refused:
            about = "" if table is None else f"{table}: "
            raise BadMessage(f"{about}{refused}") from refused

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> TableDecoder:
        positions = self._options.extra.get("positions")
        placed = positions is not None and mode is not Mode.APPEND
        rows = self.rows(placed=placed)
        return TableEngine(rows, self._options, mode, keys, types, positions, self.peek)


_HEADS_KEPT = 10_000
"""Heads in the cache, some for each table; making one costs half a microsecond."""

NOTHING = Head(Kind.NOTHING, None)
DDL = Head(Kind.DDL, None)


class JsonFormat(RowFormat):
    """A format of JSON objects, whose first members say what they are about."""

    may_lack_types = True
    options = frozenset(("default_database", "default_table"))
    maker: str
    """Whose messages these are, for errors."""
    first: type[Struct]
    """The members that ``judge`` needs, all hashable, in the order in which they are written,
    which msgspec reads fastest."""

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._first: Callable[[bytes], Any] = msgspec.json.Decoder(self.first).decode
        self._heads: dict[tuple[object, ...], Head] = {}
        self._database = options.extra.get("default_database")
        self._table = options.extra.get("default_table")

    @abstractmethod
    def judge(self, first: Any) -> Head:
        """The head of a message with these members; raises BadMessage."""

    def peek(self, value: bytes | None) -> Head:
        if not value:
            return NOTHING
        try:
            first = self._first(value)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BadMessage(f"not a {self.maker} message: {why_not(value, error)}") from error
        return self._heads.get(astuple(first)) or self._new_head(first)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        decode, known = self._first, self._heads.get
        for value in values:
            try:
                first = decode(value)  # type: ignore[arg-type]
            except (msgspec.DecodeError, ValueError, RecursionError, TypeError):
                yield self.peek(value)  # which raises for a bad one
                continue
            yield known(astuple(first)) or self._new_head(first)

    def _new_head(self, first: Any) -> Head:
        return self.keep(astuple(first), self.judge(first))

    def keep(self, key: tuple[object, ...], head: Head) -> Head:
        """Remember the head of messages with these members."""
        if len(self._heads) >= _HEADS_KEPT:
            self._heads.clear()
        self._heads[key] = head
        return head

    def head_of(
        self, type_: str, database: str | None, table: str | None, kinds: Mapping[str, Kind]
    ) -> Head:
        """The head of a message whose type says its kind, its table perhaps the configured one;
        raises BadMessage."""
        kind = kinds.get(type_)
        if kind is None:
            what = f"of unknown type {type_!r}" if type_ else "without a type"
            raise BadMessage(f"a {self.maker} message {what}")
        if kind is not Kind.ROWS:
            return Head(kind, None)
        database, table = database or self._database, table or self._table
        if not database or not table:
            part = "table" if database else "database"
            raise BadMessage(
                f"a {self.maker} message of type {type_} without a {part}, and no "
                f"default_{part} is set"
            )
        return Head(kind, TableName(database, table))

"""Decodes Maxwell's JSON messages: a row, or one table's part of a statement each."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from changes.formats.engine import json_text as glance
from changes.formats.engine.format import (
    VALUE_AT,
    Confidence,
    DeclaredTypes,
    Packed,
    sizes,
)
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.formats.engine.repeated_renames import RepeatedRenames
from changes.formats.engine.row_format import NOTHING, JsonFormat
from changes.formats.maxwell.ddl import TYPES, read_statement, statement_of
from changes.formats.maxwell.encrypted import NO_KEY, Decryptor
from changes.formats.maxwell.rows import (
    LETTERS,
    MaxwellRows,
    body,
    is_record_key,
    moment,
    source_ms,
)
from changes.model.model import BadMessage, Ddl, FormatOptions, Head, Kind, TableName
from changes.model.places import TransactionEnd, Transactions, transactions_among
from changes.model.row_events import RowEvent, Told

_KINDS = dict.fromkeys(LETTERS, Kind.ROWS)
_KINDS |= dict.fromkeys(TYPES, Kind.DDL)
_KINDS |= dict.fromkeys(("bootstrap-start", "bootstrap-complete", "heartbeat"), Kind.NOTHING)


class _First(Struct, gc=False):
    """In the order in which Maxwell writes them, which msgspec reads fastest."""

    database: str | None = None
    table: str | None = None
    type: str = ""
    encrypted: Any = None
    reason: str | None = None


class _Last(Struct, gc=False):
    """What tells a transaction, and its end."""

    commit: bool = False
    xid: int | None = None
    gtid: str | None = None
    ts: int | None = None
    type: str = ""

    @property
    def transaction(self) -> str | None:
        """Its name: the GTID where Maxwell writes it, else MySQL's number."""
        return self.gtid or (None if self.xid is None else str(self.xid))


_LAST = msgspec.json.Decoder(_Last).decode


class MaxwellJson(JsonFormat):
    """The ``Format`` of Maxwell's JSON. Records come packed (``Format.keyed``): the record key has
    the table's key columns where the message does not name them.

    The option ``encryption_key`` decrypts messages, ``default_database`` and ``default_table`` name
    the table of rows without one. Raises ValueError for an invalid AES key or an unknown time zone.
    """

    name: str = "maxwell-json"
    keyed: bool = True
    column_types = DeclaredTypes.NONE
    prints_as_database = True
    options = JsonFormat.options | {"encryption_key"}
    maker = "Maxwell"
    first = _First

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        key = options.extra.get("encryption_key")
        self._decryptor = None if key is None else Decryptor(key)
        self._repeated = RepeatedRenames()

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        if glance.is_empty(record.value):
            return Confidence.CERTAIN if is_record_key(record.key) else Confidence.OPEN
        found = glance.members(record.value)
        if glance.members(found.get("encrypted")).keys() >= {"iv", "bytes"}:
            return Confidence.CERTAIN
        if glance.word(found, "type") not in _KINDS and "reason" not in found:
            return Confidence.NO
        signs = [glance.is_object(found, "data"), glance.is_object(found, "def"), "sql" in found]
        named = bool(glance.word(found, "database"))
        if named and any(signs) and found.keys() & {"ts", "xid", "reason"}:
            return Confidence.CERTAIN
        return Confidence.LIKELY if signs[0] or named else Confidence.OPEN

    def peek(self, value: bytes | None) -> Head:
        text = b"" if value is None else body(value)
        if not text:
            return NOTHING  # a tombstone: the delete came before it
        try:
            first = self._first(text)
            if not first.type and first.encrypted is not None:
                first = self._first(self._plain(text))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BadMessage(f"not a Maxwell message: {why_not(text, error)}") from error
        except Refused as refused:
            raise BadMessage(f"a Maxwell message that is {refused}") from refused
        return self.judge(first)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        decode, known = self._first, self._heads.get
        for value in values:
            try:
                # Written out, for it is done for every message: ``body``.
                first = decode(value[VALUE_AT : VALUE_AT + sizes(value)[0]])  # type: ignore[index, arg-type]
            except (msgspec.DecodeError, ValueError, RecursionError, TypeError):
                yield self.peek(value)  # which raises for a bad one
                continue
            seen = known((first.type, first.database, first.table))
            if seen is None or first.reason is not None:
                seen = self.peek(value)
                if first.type:
                    self.keep((first.type, first.database, first.table), seen)
            yield seen

    def judge(self, first: _First) -> Head:
        if first.reason is not None:
            raise BadMessage(
                f"{first.database}.{first.table}: a row that Maxwell could not send, all but its "
                f"key is missing: {first.reason}"
            )
        return self.head_of(first.type, first.database, first.table, _KINDS)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        try:
            return read_statement(self._plain(body(value)))
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._repeated.turn_to(partition, first, next_offset)

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        return self._repeated.why_not(self._plain(body(value)), found)

    def moment(self, value: bytes) -> int | None:
        return moment(self._plain(body(value)))

    def header(self, value: bytes) -> tuple[TableName, str]:
        return statement_of(self._plain(body(value)))

    def source_ms(self, value: bytes | None) -> int | None:
        """A bootstrap's rows are read from the table."""
        try:
            return source_ms(self._plain(body(value or b"")))
        except (Refused, struct.error, msgspec.DecodeError, ValueError, RecursionError):
            return None

    def row_events(self, value: bytes | None, head: Head) -> tuple[Told, ...]:
        """Without numbers: a transaction's last row has no ``xoffset``, and one that is lost before
        it would not be missed."""
        found = super().row_events(value, head)
        if not found or not self._first(self._plain(body(value or b""))).type.startswith("boot"):
            return found
        return tuple(e._replace(read=True) if isinstance(e, RowEvent) else e for e in found)

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        """Maxwell writes ``commit`` on a transaction's last row alone."""
        last = None if b'"commit":true' not in (value or b"") else self._last(value)
        if last is None or not last.commit or last.transaction is None:
            return None
        return TransactionEnd(last.transaction, None if last.ts is None else last.ts * 1000)

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        last = self._last(value)
        return None if last is None else transactions_among((last.transaction,))

    def _last(self, value: bytes | None) -> _Last | None:
        """None of what can't be read, and of a bootstrap, whose rows are read from the table."""
        try:
            last = _LAST(self._plain(body(value or b"")))
        except (Refused, struct.error, msgspec.DecodeError, ValueError, RecursionError):
            return None
        return None if last.type.startswith("bootstrap") else last

    def _plain(self, text: bytes) -> bytes:
        """The message without encryption; raises Refused."""
        if self._first(text).encrypted is None:
            return text
        if self._decryptor is None:
            raise Refused(NO_KEY)
        return self._decryptor.decrypted(text)

    def rows(self, *, placed: bool = False) -> MaxwellRows:
        return MaxwellRows(self._decryptor)

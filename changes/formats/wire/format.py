"""The formats ``debezium`` and ``upsert``: the same records on any wire.

JSON, or Avro, Protobuf and JSON Schema in the frames of a schema registry. Records stay packed as
they came, with their frames, wherever they are kept: dead letters and spills have a record's bytes
and its schema's identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from changes.formats.debezium.json import POSITIONS, DebeziumJson
from changes.formats.engine.format import Confidence, Format, Packed, RowChange, Statement
from changes.formats.engine.layout import Refused
from changes.formats.upsert.typed import TypedUpsert
from changes.formats.wire.avro_heads import AvroHead
from changes.formats.wire.connect import respelled
from changes.formats.wire.decoder import WireDecoder
from changes.formats.wire.translation import Meanings, SchemaNotKept, Translations
from changes.model.model import BadMessage, ColumnTypes, Ddl, FormatOptions, Head, Kind, Mode
from changes.model.places import Place, TransactionEnd, Transactions
from changes.model.row_events import Told

OWN_OPTIONS = frozenset(("absent_fields",))
"""The names of the options that the inner formats don't have."""


class WireFormat(Format):
    """A ``Format`` whose records are another one's, once they are translated."""

    keyed: bool = True
    framed: bool = True
    binary: bool = True
    may_lack_types: bool = True
    instants = False
    """Whether a timestamp of Protobuf is a moment; else it is a local time, as Connect has it."""

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        absent = options.extra.get("absent_fields", "refuse")
        if absent not in ("refuse", "zero"):
            raise ValueError(f"absent_fields: {absent!r} is neither refuse nor zero")
        extra = {name: each for name, each in options.extra.items() if name not in OWN_OPTIONS}
        self._inner = self.inner(replace(options, extra=extra))
        meanings = Meanings(zero=absent == "zero", instants=self.instants)
        self._translations = Translations(options.registry, meanings)

    def inner(self, options: FormatOptions) -> Format:
        """Make the format of translated records. Raises ValueError where an option can't be met."""
        raise NotImplementedError

    def plain(self, value: bytes | None, *, whole: bool = False) -> bytes:
        """A record translated, ``whole`` for who reads its row; raises BadMessage."""
        if value is None:
            raise BadMessage("a record that was not packed")
        try:
            translations = self._translations
            return translations.whole(value, {}) if whole else translations.plain(value)
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def peek(self, value: bytes | None) -> Head:
        return self._inner.peek(self.plain(value))

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        return self._inner.heads(map(self.plain, values))

    def record_keys(self, values: Sequence[bytes]) -> Sequence[bytes | None]:
        return list(map(self._translations.key, values))

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        return self._inner.ddl(self.plain(value))

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._inner.turn_to(partition, first, next_offset)

    def notes(self) -> tuple[str, ...]:
        return self._inner.notes()

    def why_passed_over(self, value: bytes) -> str:
        return self._inner.why_passed_over(self.plain(value))

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        return self._inner.why_not_followed(self.plain(value), found)

    def source_ms(self, value: bytes | None) -> int | None:
        if type(self._inner).source_ms is Format.source_ms:
            return None  # translating a record costs more than decoding it
        try:
            return self._inner.source_ms(self.plain(value))
        except BadMessage:
            return None

    def place(self, value: bytes | None) -> Place | None:
        try:
            return self._inner.place(self.plain(value))
        except BadMessage:
            return None

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        try:
            return self._inner.transaction_end(self.plain(value))
        except BadMessage:
            return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        try:
            return self._inner.transactions_of(self.plain(value))
        except BadMessage:
            return None

    def row_events(self, value: bytes | None, head: Head) -> tuple[Told, ...]:
        return self._inner.row_events(self.plain(value), head)

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        return self._inner.explain(self.plain(value, whole=True))

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> WireDecoder:
        inner = self._inner.table_decoder(mode, keys, types)
        return WireDecoder(inner, self._translations.whole_all, respelled(keys or ()))


class Debezium(WireFormat):
    """The ``Format`` of Debezium's records on any wire; its options are those of their JSON."""

    name: str = "debezium"
    positions: str | None = POSITIONS
    options = DebeziumJson.options | OWN_OPTIONS

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._known: dict[AvroHead, Head] = {}
        self._unread: bytes | None = None
        """The latest record, where only its head was looked at."""

    def inner(self, options: FormatOptions) -> DebeziumJson:
        self._json = DebeziumJson(options)
        return self._json

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        """Its JSON is ``debezium-json``; what frames hold needs a registry (``AutoFormat``)."""
        return Confidence.NO

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        self._read_latest()
        super().turn_to(partition, first, next_offset)

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        """Of an envelope in Avro only the head is read, once its table is known. A delete is read
        whole, for its tombstone."""
        for value in values:
            found = None if value is None else self._translations.head(value)
            known = None if found is None else self._known.get(found)
            if known is None:
                self._read_latest()
                plain = self.plain(value)
                known = self._json.peek(plain)
                self._json.behind(plain)
                if found is not None and found[0] in _KEEPING and known.kind is Kind.ROWS:
                    if len(self._known) >= _HEADS_KEPT:
                        self._known.clear()
                    self._known[found] = known
            else:
                self._unread = value
            yield known

    def _read_latest(self) -> None:
        """What follows may need the record before it. Where that is damaged behind its head, its
        decoder says so; here it is one that says nothing."""
        if self._unread is not None:
            try:
                latest = self.plain(self._unread)
            except BadMessage:
                latest = None
            self._json.behind(latest)
            self._unread = None


_KEEPING = frozenset(("c", "r", "u"))
"""Operations that end no key."""

_HEADS_KEPT = 10_000


class Upsert(WireFormat):
    """The ``Format`` of flat rows of anybody on any wire: their key is the record's key, and a
    record without a value deletes."""

    name: str = "upsert"
    options = TypedUpsert.options | OWN_OPTIONS
    instants = True

    def inner(self, options: FormatOptions) -> Format:
        return TypedUpsert(options)

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        return Confidence.NO

    def peek(self, value: bytes | None) -> Head:
        return self._inner.peek(value)  # its head is the same for all, so nothing is translated

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        """Nothing is translated; but a schema that did not come is a bad record here, so that a
        decoder that lacks one knows it to be lost (``SchemaLost``)."""
        values = list(values)
        try:
            self._translations.check_kept(values)
            yield from self._inner.heads(values)
        except SchemaNotKept:
            for value in values:
                yield self._checked(value)

    def _checked(self, value: bytes | None) -> Head:
        try:
            self._translations.check_kept((value,))
        except SchemaNotKept as missing:
            raise BadMessage(str(missing)) from missing
        return self._inner.peek(value)

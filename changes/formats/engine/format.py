"""The interface of a format: ``Format``, its table decoder, and packed records.

One instance serves one pipeline.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

from changes.model.model import (
    Changes,
    ColumnTypes,
    Ddl,
    FormatOptions,
    Head,
    Kind,
    Mode,
    TableName,
    TableSchema,
)
from changes.model.places import Place, TransactionEnd, Transactions, transactions_among
from changes.model.row_events import RowEvent, Told, TransactionMark, TransactionPart
from offsets.parts import Part

if TYPE_CHECKING:
    from changes.formats.engine.column_changes import ColumnChange
    from changes.formats.engine.key_runs import KeyRuns

Headers = Sequence[tuple[str, bytes | None]]
"""A record's headers in their order; names may repeat."""


class Packed(NamedTuple):
    """A record's parts. An absent key or value is None, an empty one is empty."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


_PREFIX = struct.Struct("<iiI")
"""Bytes of the value, of the key (-1: there is none), and of the headers."""

VALUE_AT = _PREFIX.size
"""Where in a packed record its value begins: what ``unpack`` would copy can be read in place."""

sizes = _PREFIX.unpack_from
"""Of a packed record: bytes of its value, which begins at ``VALUE_AT``, of its key behind that (-1
each: there is none), and of its headers."""

_headers = msgspec.msgpack.Decoder(list[tuple[str, bytes | None]])


def pack(key: bytes | None, value: bytes | None, headers: Headers = ()) -> bytes:
    """Make one bytes object of a record, which travels as "the value" of a ``keyed`` format.

    About half a microsecond for a record of 500 bytes.
    """
    encoded = msgspec.msgpack.encode(headers) if headers else b""
    sizes = _PREFIX.pack(
        -1 if value is None else len(value), -1 if key is None else len(key), len(encoded)
    )
    return b"".join((sizes, value or b"", key or b"", encoded))


def repacked(packed: bytes, key: bytes | None, value: bytes | None) -> bytes:
    """A packed record with another key and value, and the headers as they are."""
    old_size, old_key_size, headers_size = _PREFIX.unpack_from(packed)
    prefix = _PREFIX.pack(
        -1 if value is None else len(value), -1 if key is None else len(key), headers_size
    )
    headers = packed[VALUE_AT + max(old_size, 0) + max(old_key_size, 0) :]
    return b"".join((prefix, value or b"", key or b"", headers))


_MARK = struct.Struct("<iB")
_MARKED = -2
"""In the place of a value's size, which is never this: a format's name comes first."""

_MARKED_BYTES = _MARKED.to_bytes(4, "little", signed=True)


def mark_of(name: str) -> bytes:
    """The prefix of a packed record that names its format (``format = "auto"``)."""
    encoded = name.encode()
    return _MARK.pack(_MARKED, len(encoded)) + encoded


def mark_in(value: bytes) -> bytes:
    """The mark before a packed record, empty where there is none."""
    return value[: _MARK.size + value[4]] if value[:4] == _MARKED_BYTES else b""


def marked_name(mark: bytes) -> str:
    """The format that a mark names. Raises ValueError (UnicodeDecodeError) where it is damaged."""
    return mark[_MARK.size :].decode()


def unpack(packed: bytes) -> Packed:
    """Unpack a record, marked or not. Raises ValueError where ``pack`` did not make it."""
    if packed[:4] == _MARKED_BYTES:
        packed = packed[len(mark_in(packed)) :]
    try:
        value_size, key_size, headers_size = _PREFIX.unpack_from(packed)
        at = VALUE_AT + max(value_size, 0)
        end = at + max(key_size, 0)
        if len(packed) != end + headers_size:
            raise ValueError(f"a packed record of {end + headers_size} bytes has {len(packed)}")
        return Packed(
            None if key_size < 0 else packed[at:end],
            None if value_size < 0 else packed[VALUE_AT:at],
            _headers.decode(packed[end:]) if headers_size else (),
        )
    except (struct.error, msgspec.DecodeError) as error:
        raise ValueError(f"not a packed record: {error}") from error


def packed_values(records: Sequence[bytes]) -> list[bytes]:
    """The values alone of many packed records, empty where there is none."""
    return [packed[VALUE_AT : VALUE_AT + sizes(packed)[0]] for packed in records]


def packed_keys(records: Sequence[bytes]) -> list[bytes | None]:
    """The keys alone of many packed records, marked or not, None where there is none."""
    found: list[bytes | None] = []
    for packed in records:
        value_size, key_size, _ = _PREFIX.unpack_from(packed)
        if value_size == _MARKED:
            found.append(unpack(packed).key)
            continue
        at = VALUE_AT + value_size if value_size > 0 else VALUE_AT
        found.append(None if key_size < 0 else packed[at : at + key_size])
    return found


def packed_headers(packed: bytes) -> Headers:
    """The headers alone, without the copies of ``unpack``; quickest where there are none."""
    value_size, key_size, headers_size = _PREFIX.unpack_from(packed)
    if not headers_size:
        return ()
    return _headers.decode(packed[VALUE_AT + max(value_size, 0) + max(key_size, 0) :])


def packed_header(packed: bytes, name: str) -> bytes | None:
    """The last header of that name, None where there is none or it has no value."""
    found = packed_headers(packed)
    return next((value for key, value in reversed(found) if key == name), None)


class Confidence(IntEnum):
    """How sure a format is that a record is its own. The surest one is believed."""

    NO = 0
    """It is not."""
    OPEN = 1
    """It may be, without anything typical of it: a tombstone, a bare row."""
    LIKELY = 2
    """It has the format's shape, which other messages may have too."""
    CERTAIN = 3
    """It has what no other format writes."""


class DeclaredTypes(Enum):
    """What messages say of their columns' types, and so what a load has to store."""

    OWN = auto()
    """Types of the format's own, which a load must know."""
    SOURCE = auto()
    """Each column's type in the source's words."""
    NONE = auto()
    """Nothing: a column is text unless the configuration declares its type."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change for people to read. ``op`` is I, U or D; a key change is one U, by the new key.

    Images hold the columns that are known, as Python values: integers as int, DECIMAL as Decimal,
    other values as the lake's. ``before`` is None for I, ``after`` for D. ``ts_ms`` is when the
    change happened, in milliseconds since 1970, None where the message does not say.
    """

    table: TableName
    op: str
    key: Mapping[str, object]
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    ts_ms: int | None
    misfit: str | None = None
    """Why the lake refuses the row: a value that contradicts its declared type, which stands here
    as it came, or, by ``AsTarget``, the row as a whole."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement, or one table's part of it, for people to read."""

    table: TableName
    sql: str
    ts_ms: int | None


class TableDecoder(Protocol):
    """Decodes the records of one target in lane order; remembers the layout it saw last.

    Used by one thread at a time: its owner is the target's buffer in the processor.
    """

    @property
    def schema(self) -> TableSchema | None:
        """All columns seen so far (types only ever widen), None before the first row."""
        ...

    @property
    def positions(self) -> str | None:
        """The name of the positions that its rows carry (``changes.model.positions``), None: no
        position.

        Never changes. Positions of one name compare with each other. Two changes of one key have
        different positions, or they are the same change. Every row is whole: one position a row
        can't say which column changed last, so a decoder with positions refuses a partial row.
        """
        ...

    @property
    def declared_types(self) -> Mapping[str, str]:
        """By column the type that messages declared last, as the source writes it:
        ``decimal(10,2)``.

        Only of MySQL and its like: the processor compares it with the types in statements.
        """
        ...

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        """Return the changes in the messages' lists of columns since the last call."""
        ...

    def use_stored_schema(self, stored: TableSchema) -> None:
        """Take the target's columns, for records that declare no types, or that leave nulls out.
        Called before the first record, or not at all. The type null says nothing of a column."""
        ...

    @property
    def key_runs(self) -> KeyRuns:
        """How far each lane is in changes of keys that may cross."""
        ...

    def use_key_runs(self, runs: KeyRuns) -> None:
        """Go on where another decoder of this target was: columns that are redefined in one lane
        end no change of the others'. Called before the first record, or not at all."""
        ...

    def resume(self, partition: int, held: int, start: int) -> None:
        """Say where a lane goes on, and how far it is done. What comes of it next is the first of
        its lane if that is above what was decoded last: another member has written what lies
        between, or it could not be applied. It may have been decoded before, and not written."""
        ...

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        """Decode records that ``peek`` called ROWS. None when they hold no row at all.

        Raises BadRecord with the place of the first record that can't be applied.
        """
        ...


class Format(ABC):
    """A change format. ``heads`` sees every message, on the fetcher's thread: keep it cheap.

    A format of rows derives from ``engine.row_format.RowFormat``, which has all but what a message
    is.
    """

    name: str

    positions: str | None = None
    """The name of the positions that its rows carry where the configuration asks for them; None:
    it has none."""

    options: frozenset[str] = frozenset()
    """The names of its own options (``FormatOptions.extra``), beside ``positions``."""

    keyed: bool = False
    """Whether it needs a record's key or headers. Then every "value" that it gets is the whole
    record as ``pack`` makes it, and never None."""

    framed: bool = False
    """Whether its records may name their schema in a registry: then they wait until it is kept."""

    column_types = DeclaredTypes.OWN
    prints_as_database: bool = False
    """Whether dates and times come as text that the database itself prints. Otherwise a load
    refuses them in a column of text, and asks for a declared type."""
    may_lack_types: bool = False
    """Whether some messages declare no types, so that the configuration may."""

    binary: bool = False
    """Whether messages are arbitrary bytes: no file has one a line."""

    def __init__(self, options: FormatOptions) -> None:
        """Raises ValueError where an option can't be met."""
        from changes.sql.convert import check_zone  # late: who unpacks a record needs no Arrow

        check_zone(options.time_zone)
        configured = options.extra.get("positions")
        if configured not in (None, self.positions):
            which = "" if self.positions is None else "other "
            than = "" if self.positions is None else f" than {self.positions}"
            raise ValueError(f"{self.name} gives no {which}positions{than}")
        self._options = options

    @property
    def types(self) -> ColumnTypes:
        """The configured types of columns, by which ``explain`` reads."""
        return self._options.types

    @staticmethod
    @abstractmethod
    def recognise(record: Packed) -> Confidence:
        """How sure the format is that an unknown record is its own; raises nothing.

        For ``format = "auto"``. Errors inside a record of its own don't count.
        """

    @abstractmethod
    def peek(self, value: bytes | None) -> Head:
        """A message's kind and table, without decoding its rows; raises BadMessage."""

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        """``peek`` for many messages: a call for each would double the cost.

        Raises BadMessage on reaching a bad one.
        """
        return map(self.peek, values)

    def record_keys(self, values: Sequence[bytes]) -> Sequence[bytes | None]:
        """Of a ``keyed`` format: the records' keys as JSON, of which two are spelled alike only
        where their bytes are. Raises Refused."""
        return packed_keys(values)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        """Parse a DDL message, one entry for each table it names; raises BadMessage."""
        return ()

    # --- of a format that reads a record by those before it in its partition: its ``peek`` may say
    # PASSED_OVER

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        """Announce the partition and the offsets of the records that are peeked at next, in
        order."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Take the remarks on the records so far, each of them once (tables whose names are not
        certain)."""
        return ()

    def why_passed_over(self, value: bytes) -> str:
        """Say in one line what is passed over and why, without what differs from record to
        record."""
        raise ValueError(f"{self.name} passes nothing over")

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        """Why a statement can't be followed after the records before it, None where it can. It is
        the last one that was peeked at, and ``found`` is what ``ddl`` returned for it."""
        return None

    def source_ms(self, value: bytes | None) -> int | None:
        """When a message's change happened by its source's clock, in milliseconds since 1970: proof
        that the log has passed that moment. None where the message proves nothing. Raises nothing.

        What a tool says of the time at which it wrote the message is no such proof, and neither is
        a row that it read from a table: those come in another order than the source's log has.
        So a format gives a time only where it knows whose clock that is.
        """
        return None

    def times_of(self, values: Sequence[bytes]) -> Sequence[int | None]:
        """``source_ms`` of many messages that were decoded: where a call for each costs as much as
        decoding it, a format reads them together."""
        return list(map(self.source_ms, values))

    def place(self, value: bytes | None) -> Place | None:
        """Where a message's change is in its source's log, None where the message does not tell and
        of rows that were read from a table. Raises nothing.

        Of transactions alone: a set of them, or a place that a tool has come to, is no such place.
        """
        return None

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        """The transaction of which a message is certainly the end, so that what follows it belongs
        to others; None where it is none, or does not tell. Raises nothing."""
        return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        """The transactions that a message's changes are of; None where it does not tell, and of
        rows that were read from a table. Raises nothing."""
        place = self.place(value)
        return None if place is None else transactions_among((place.gtid,))

    def transaction_part(self, value: bytes | None) -> TransactionPart | TransactionMark | None:
        """What a message is of a transaction whose messages may lie in several partitions: one of
        its events, its begin, its end. None of others, and where no end says how many events there
        are. Raises nothing."""
        return None

    def row_events(self, value: bytes | None, head: Head) -> tuple[Told, ...]:
        """The row events of a message, or the begin or end of a transaction that it is. ``head``:
        what ``peek`` said of it. Events have the time of the message, or of their entry in it.
        Raises BadMessage."""
        if head.kind not in (Kind.ROWS, Kind.MULTI_ENTRY):
            return ()
        time_ms, alone = self.source_ms(value), head.kind is Kind.ROWS
        found = (each for each in self.explain(value) if isinstance(each, RowChange))
        return tuple(RowEvent(e.table, e.op, time_ms if alone else e.ts_ms) for e in found)

    @abstractmethod
    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        """Explain a message to people; empty where it has nothing to apply.

        Uses one message alone, but reads values as a ``TableDecoder`` does. Raises BadMessage.
        """

    @abstractmethod
    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> TableDecoder:
        """Make the decoder of one target. Raises ValueError for an invalid type.

        ``keys`` overrides the key in the messages. ``types`` are the types of columns whose
        messages declare none. With mode UPSERT and no key at all the decoder makes a changelog
        (mode APPEND).
        """


def earliest(times: Iterable[int]) -> int | None:
    """The ``source_ms`` of a message of changes with these times; zero and less is none."""
    first = min(times, default=0)
    return first if first > 0 else None


class Entry(NamedTuple):
    """One entry of a message of several: ROWS or DDL, its table, its bytes for ``joined``."""

    kind: Kind
    table: TableName
    data: bytes


@runtime_checkable
class MultiEntry(Protocol):
    """The further methods of a ``Format`` whose messages may hold several entries."""

    def entries(self, value: bytes) -> Sequence[Entry]:
        """The entries of a message, in order, without decoding rows; raises BadMessage."""
        ...

    def joined(self, value: bytes, entries: Sequence[bytes]) -> bytes:
        """Make a message of some entries' ``data``: one target's part of ``value``."""
        ...


@runtime_checkable
class Chunked(Protocol):
    """The further methods of a ``Format`` whose messages may be split into parts, or numbered."""

    def comes_in_parts(self, values: Sequence[bytes | None]) -> bool:
        """Whether a partition's neighbouring records may be parts of messages."""
        ...

    def part(self, value: bytes) -> tuple[str, Part] | None:
        """The stream (shard) of a part, and the part; None for a whole message.

        Raises BadMessage.
        """
        ...

    def sequence_number(self, value: bytes) -> tuple[str, int | None]:
        """A message's stream, and its sequence number there, None where it has none.

        The producer counts by one, and from 1 after it restarts. Raises BadMessage.
        """
        ...

    def reassembled(self, value: bytes, data: bytes) -> bytes:
        """Make one message of all parts' data; ``value`` is the last part."""
        ...

"""The format ``auto``: each topic's format is detected from its first messages, and stays.

From then on each record of the topic carries its format's name in front (``base.mark_of``), to the
decoders and in spills. So it is detected once, by the fetcher alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

from changes.formats import AUTO, FORMATS, TopicFormats
from changes.formats.auto_decoder import AutoTableDecoder
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import (
    VALUE_AT,
    Chunked,
    Confidence,
    Entry,
    Format,
    MultiEntry,
    Packed,
    RowChange,
    Statement,
    TableDecoder,
    mark_in,
    mark_of,
    marked_name,
    pack,
    packed_keys,
    sizes,
    unpack,
)
from changes.formats.recognise import confidences, not_read, recognised
from changes.formats.wire.format import WireFormat
from changes.model.model import BadMessage, ColumnTypes, Ddl, FormatOptions, Head, Mode
from changes.model.places import Place, TransactionEnd, Transactions
from changes.model.registry import Registry
from changes.model.row_events import Told, TransactionMark, TransactionPart
from offsets.parts import Part

ON_ANY_WIRE = {"debezium-json": "debezium"}
"""The formats of JSON that have one for all wires."""

_TURNED = (
    "its topic was detected before as JSON, which stays. Name the format and the registry in the "
    'pipeline (format = "{}", registry = "NAME"): that reads both'
)

_AT_ONCE = 500
"""Records whose marks are removed together. More: after a bad one more of it is done again. Fewer
save nothing."""


class AutoFormat(Format):
    """The ``Format`` of topics whose formats are detected.

    Records come packed and marked, whatever their format. Raises ValueError where no format can
    meet the options, or one of them by itself.
    """

    name: str = AUTO
    options = frozenset(name for each in FORMATS.values() for name in each.options)
    keyed: bool = True
    binary: bool = True

    def __init__(self, options: FormatOptions, topics: TopicFormats | None = None) -> None:
        self.topics = topics or TopicFormats()
        self._options = options
        self._formats: dict[bytes, Format] = {}
        self._unusable: dict[str, str] = {}
        for name, kind in FORMATS.items():
            try:
                self._formats[mark_of(name)] = kind(options)
            except ValueError as error:
                self._unusable[name] = str(error)
        if not self._formats:
            raise ValueError("; ".join(sorted(set(self._unusable.values()))))
        for name in options.extra:
            _check_option(options, name)
        formats = self._formats.items()
        self._multi_entry = {mark: f for mark, f in formats if isinstance(f, MultiEntry)}
        self._chunked = {mark: f for mark, f in formats if isinstance(f, Chunked)}
        self._anything = {mark for mark, f in formats if _reads_anything(f)}

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        """As sure as the surest of all formats."""
        return max(confidences(record).values(), default=Confidence.NO)

    def problem(self, name: str) -> str | None:
        """Why a format can't be used with the pipeline's options, None where it can."""
        return self._unusable.get(name) if name in FORMATS else f"unknown format {name!r}"

    def named(self, name: str) -> Format:
        """One of the formats, with the pipeline's options; raises ValueError."""
        if (problem := self.problem(name)) is not None:
            raise ValueError(problem)
        return self._formats[mark_of(name)]

    @property
    def registry(self) -> Registry | None:
        """The schema registry of its records."""
        return self._options.registry

    def confidences(self, record: Packed) -> dict[str, Confidence]:
        """By format its confidence that a record is its own. With a registry the formats of any
        wire stand for those of JSON: a topic may turn from one wire to another."""
        found = confidences(record)
        if self._options.registry is None:
            return found
        wire = self._formats.get(mark_of("debezium"))
        if recognised(found) is None and isinstance(wire, WireFormat):
            try:
                plain = wire.plain(pack(record.key, record.value, record.headers))
            except BadMessage:  # its schema is not kept, or it is damaged: another record may tell
                return {}
            found = confidences(unpack(plain))
        return {ON_ANY_WIRE.get(name, name): sign for name, sign in found.items()}

    def may_be_framed(self, name: str) -> bool:
        """Whether records of one of the formats may name their schema in a registry."""
        return name in FORMATS and FORMATS[name].framed

    def marked(self, topic: str, packed: bytes) -> bytes:
        """Put the format's mark before a record of a topic whose format is known."""
        name = self.topics.of(topic)
        assert name is not None
        return mark_of(name) + packed

    def comes_in_parts(self, values: Sequence[bytes | None]) -> bool:
        """See ``formats.base.Chunked``; a partition's records are all of one format."""
        value = values[0] if values else None
        return value is None or mark_in(value) in self._chunked

    # --- a Format, with all that one may also offer

    def peek(self, value: bytes | None) -> Head:
        return next(self.heads([value]))

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        rest = iter(values)
        while some := list(islice(rest, _AT_ONCE)):
            for mark, group in groupby(some, _mark_of):
                format_ = self._of(mark)
                same = [value for value in group if value is not None]
                if mark not in self._anything:
                    yield from self._heads(mark, format_, same)
                    continue
                for value in same:
                    self._check(format_, value)
                    yield from self._heads(mark, format_, [value])

    def _heads(self, mark: bytes, format_: Format, values: Sequence[bytes]) -> Iterator[Head]:
        plain = self._plain(mark, format_, values)
        try:
            yield from format_.heads(plain)
        except BadMessage as bad:
            raise _explained(bad, format_, values, plain) from bad

    def record_keys(self, values: Sequence[bytes]) -> Sequence[bytes | None]:
        runs = ((mark, list(run)) for mark, run in groupby(values, _mark_of))
        return [key for mark, run in runs for key in self._record_keys(mark, run)]

    def _record_keys(self, mark: bytes, values: Sequence[bytes]) -> Sequence[bytes | None]:
        format_ = self._of(mark)
        if not format_.keyed:
            return packed_keys(values)
        return format_.record_keys(self._plain_values(mark, values))

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        mark, plain = self._unmarked(value)
        return self._of(mark).ddl(_present(plain))

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        mark, plain = self._unmarked(value)
        return self._of(mark).explain(plain)

    def row_events(self, value: bytes | None, head: Head) -> tuple[Told, ...]:
        mark, plain = self._unmarked(value)
        return self._of(mark).row_events(plain, head)

    def source_ms(self, value: bytes | None) -> int | None:
        try:
            mark, plain = self._unmarked(value)
            return self._of(mark).source_ms(plain)
        except BadMessage:
            return None

    def place(self, value: bytes | None) -> Place | None:
        try:
            mark, plain = self._unmarked(value)
            return self._of(mark).place(plain)
        except BadMessage:
            return None

    def transaction_end(self, value: bytes | None) -> TransactionEnd | None:
        try:
            mark, plain = self._unmarked(value)
            return self._of(mark).transaction_end(plain)
        except BadMessage:
            return None

    def transactions_of(self, value: bytes | None) -> Transactions | None:
        try:
            mark, plain = self._unmarked(value)
            return self._of(mark).transactions_of(plain)
        except BadMessage:
            return None

    def transaction_part(self, value: bytes | None) -> TransactionPart | TransactionMark | None:
        try:
            mark, plain = self._unmarked(value)
            format_ = self._of(mark)
            if plain is not None and not isinstance(format_, DebeziumJson):
                return TransactionPart(None, 0)
            return format_.transaction_part(plain)
        except BadMessage:
            return None

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> AutoTableDecoder:
        positions = None if mode is Mode.APPEND else self._options.extra.get("positions")
        make = partial(self._decoder_of, mode=mode, keys=keys, types=types)
        return AutoTableDecoder(make, self._plain_values, positions)

    def entries(self, value: bytes) -> Sequence[Entry]:
        mark, plain = self._unmarked(value)
        format_ = self._multi_entry.get(mark)
        return () if format_ is None else format_.entries(_present(plain))

    def joined(self, value: bytes, entries: Sequence[bytes]) -> bytes:
        mark, plain = self._unmarked(value)
        return self._marked_like(value, self._multi_entry[mark].joined(_present(plain), entries))

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        for each in self._formats.values():
            each.turn_to(partition, first, next_offset)

    def notes(self) -> tuple[str, ...]:
        return tuple(note for each in self._formats.values() for note in each.notes())

    def why_passed_over(self, value: bytes) -> str:
        mark, plain = self._unmarked(value)
        return self._of(mark).why_passed_over(_present(plain))

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        mark, plain = self._unmarked(value)
        return self._of(mark).why_not_followed(_present(plain), found)

    def part(self, value: bytes) -> tuple[str, Part] | None:
        mark, plain = self._unmarked(value)
        format_ = self._chunked.get(mark)
        return None if format_ is None else format_.part(_present(plain))

    def sequence_number(self, value: bytes) -> tuple[str, int | None]:
        mark, plain = self._unmarked(value)
        format_ = self._chunked.get(mark)
        return ("", None) if format_ is None else format_.sequence_number(_present(plain))

    def reassembled(self, value: bytes, data: bytes) -> bytes:
        mark, plain = self._unmarked(value)
        return self._marked_like(value, self._chunked[mark].reassembled(_present(plain), data))

    # --- marks

    def _decoder_of(
        self, mark: bytes, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes
    ) -> TableDecoder:
        """The decoder of the format that a mark names; raises BadMessage."""
        try:
            return self._of(mark).table_decoder(mode, keys, types)
        except ValueError as error:  # a declared type that is not this format's
            raise BadMessage(f"a record of format {marked_name(mark)}: {error}") from error

    def _plain_values(self, mark: bytes, values: Sequence[bytes]) -> list[bytes]:
        """Records of one mark as their own format reads them; raises BadMessage."""
        found = self._plain(mark, self._of(mark), values)
        return [_present(each) for each in found] if None in found else found  # type: ignore[return-value]

    def _unmarked(self, value: bytes | None) -> tuple[bytes, bytes | None]:
        """The mark, and the record as its own format reads it; raises BadMessage."""
        mark = _mark_of(value)
        return mark, self._plain(mark, self._of(mark), [_present(value)])[0]

    def _plain(
        self, mark: bytes, format_: Format, values: Sequence[bytes]
    ) -> list[bytes] | list[bytes | None]:
        start = len(mark)
        if format_.keyed:
            return [value[start:] for value in values]
        at = start + VALUE_AT
        ends = [at + sizes(value, start)[0] for value in values]
        return [
            value[at:end] if end >= at else None for value, end in zip(values, ends, strict=True)
        ]

    def _of(self, mark: bytes) -> Format:
        found = self._formats.get(mark)
        if found is not None:
            return found
        if not mark:
            raise BadMessage("a record of a topic whose format is not known")
        name = marked_name(mark)
        raise BadMessage(f"a record of format {name}: {self.problem(name)}")

    def _check(self, format_: Format, value: bytes) -> None:
        """Raises BadMessage for another format's message, which this one would take for a row."""
        found = self.confidences(unpack(value))
        other = recognised(found)
        if (
            other not in (None, format_.name)
            and found.get(format_.name, Confidence.NO) <= Confidence.OPEN
        ):
            raise BadMessage(f"a message of {other} in a topic of {format_.name}")

    def _marked_like(self, value: bytes, made: bytes) -> bytes:
        """A message made of ``value``'s parts, as a marked record of the same format."""
        mark = mark_in(value)
        if self._of(mark).keyed:
            return mark + made
        record = unpack(value)
        return mark + pack(record.key, made, record.headers)


def _check_option(options: FormatOptions, name: str) -> None:
    """Raise ValueError for an option that none of the formats which use it can meet.

    Other formats ignore it, and would hide that until a topic of such a format comes.
    """
    alone = replace(options, extra={name: options.extra[name]})
    problems = []
    for kind in FORMATS.values():
        if name != "positions" and name not in kind.options:
            continue
        try:
            kind(alone)
        except ValueError as error:
            problems.append(str(error))
        else:
            return
    if problems:
        raise ValueError(problems[0])


def _mark_of(value: bytes | None) -> bytes:
    return mark_in(value or b"")


def _explained(
    bad: BadMessage, format_: Format, values: Sequence[bytes], plain: Sequence[bytes | None]
) -> BadMessage:
    """The error of the first bad record, which names its format where that is another one."""
    for value, each in zip(values, plain, strict=True):
        try:
            format_.peek(each)
        except BadMessage:
            record = unpack(value)
            if format_.name in ON_ANY_WIRE and (record.value or b"").startswith(b"\0"):
                return BadMessage(f"{bad}; {_TURNED.format(ON_ANY_WIRE[format_.name])}")
            other = recognised(confidences(record)) or not_read(record)
            if other in (None, format_.name):
                break
            return BadMessage(f"a message of {other} in a topic of {format_.name}: {bad}")
    return bad


def _present(value: bytes | None) -> bytes:
    if value is None:
        raise BadMessage("a message without a value")
    return value


def _reads_anything(format_: Format) -> bool:
    """Whether a format reads any object as a row, as Debezium's does with ``default_table``."""
    row = b'{"a": 1}'
    try:
        format_.peek(pack(None, row) if format_.keyed else row)
    except BadMessage:
        return False
    return True

"""``format = "auto"``: each topic's format is told from its first messages, and stays.

Once it is told, a record of the topic carries its format's name before it (``base.mark_of``), on
its way to whoever decodes it, and in a spill: so nobody has to tell it twice, nor otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice

from changes.column_changes import ColumnChange
from changes.formats import FORMATS
from changes.formats.base import (
    VALUE_AT,
    Chunked,
    Confidence,
    DeclaresColumns,
    DeclaresTypes,
    Entry,
    Format,
    InOrder,
    MultiEntry,
    Packed,
    Reminded,
    RowChange,
    Statement,
    TableDecoder,
    mark_in,
    mark_of,
    marked_name,
    pack,
    sizes,
    unpack,
)
from changes.formats.recognise import TopicFormats, confidences, not_read, recognised
from changes.model import (
    BadMessage,
    BadRecord,
    Changes,
    ColumnTypes,
    Ddl,
    FormatOptions,
    Head,
    Mode,
    TableSchema,
)
from offsets.parts import Part

AUTO = "auto"

_AT_ONCE = 500
"""Records whose marks are taken off together. More: when a bad one comes, more of it is done
again; fewer save nothing."""

_USED_BY: Mapping[str, tuple[str, ...]] = {"encryption_key": ("maxwell-json",)}
"""The formats that look at an option, where those are not all."""

NAMES = (AUTO, *sorted(FORMATS))
"""What a configuration may say."""


def make_format(name: str, options: FormatOptions, topics: TopicFormats | None = None) -> Format:
    """Make a format by its configured name; raises ValueError where an option can't be met.

    ``topics``: of ``auto``, the formats told so far; without them it reads marked records alone.
    """
    return AutoFormat(options, topics) if name == AUTO else FORMATS[name](options)


def detector(format_: Format) -> AutoFormat | None:
    """The format as what tells topics' formats; None where the configuration names it."""
    return format_ if isinstance(format_, AutoFormat) else None


class AutoFormat:
    """The ``Format`` of topics whose formats are told from their messages.

    Records come packed and marked, whatever format they are of. Raises ValueError where no format
    can meet the options, or one of them by itself.
    """

    name: str = AUTO
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
        self._anything = {m for m, each in self._formats.items() if _reads_anything(each)}

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        """As sure as the surest of all formats."""
        return max(confidences(record).values(), default=Confidence.NO)

    def problem(self, name: str) -> str | None:
        """Why a format can't be read with the pipeline's options, None where it can."""
        return self._unusable.get(name) if name in FORMATS else f"unknown format {name!r}"

    def named(self, name: str) -> Format:
        """One of the formats, with the pipeline's options; raises ValueError."""
        if (problem := self.problem(name)) is not None:
            raise ValueError(problem)
        return self._formats[mark_of(name)]

    def marked(self, topic: str, packed: bytes) -> bytes:
        """A record of a topic whose format is known."""
        name = self.topics.of(topic)
        assert name is not None
        return mark_of(name) + packed

    def comes_in_parts(self, values: Sequence[bytes | None]) -> bool:
        """Whether a partition's records may be parts of messages: they are all of one format."""
        value = values[0] if values else None
        return value is None or isinstance(self._formats.get(mark_in(value)), Chunked)

    # --- a Format, and what it may also be

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

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        format_, plain = self._opened(value)
        return format_.ddl(_present(plain))

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        format_, plain = self._opened(value)
        return format_.explain(plain)

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> AutoTableDecoder:
        return AutoTableDecoder(self, self._options, mode, keys, types)

    def entries(self, value: bytes) -> Sequence[Entry]:
        format_, plain = self._opened(value)
        return format_.entries(_present(plain)) if isinstance(format_, MultiEntry) else ()

    def joined(self, value: bytes, entries: Sequence[bytes]) -> bytes:
        format_, plain = self._opened(value)
        assert isinstance(format_, MultiEntry)
        return self._closed(value, format_, format_.joined(_present(plain), entries))

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        for each in self._formats.values():
            if isinstance(each, InOrder):
                each.turn_to(partition, first, next_offset)

    def notes(self) -> tuple[str, ...]:
        ordered = (each for each in self._formats.values() if isinstance(each, InOrder))
        return tuple(note for each in ordered for note in each.notes())

    def why_passed_over(self, value: bytes) -> str:
        format_, plain = self._opened(value)
        assert isinstance(format_, InOrder)
        return format_.why_passed_over(_present(plain))

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        format_, plain = self._opened(value)
        if not isinstance(format_, InOrder):
            return None
        return format_.why_not_followed(_present(plain), found)

    def part(self, value: bytes) -> tuple[str, Part] | None:
        format_, plain = self._opened(value)
        return format_.part(_present(plain)) if isinstance(format_, Chunked) else None

    def sequence_number(self, value: bytes) -> tuple[str, int | None]:
        format_, plain = self._opened(value)
        return (
            format_.sequence_number(_present(plain)) if isinstance(format_, Chunked) else ("", None)
        )

    def reassembled(self, value: bytes, data: bytes) -> bytes:
        format_, plain = self._opened(value)
        assert isinstance(format_, Chunked)
        return self._closed(value, format_, format_.reassembled(_present(plain), data))

    # --- marks

    def decoder_of(
        self, mark: bytes, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes
    ) -> TableDecoder:
        """The decoder of the format that a mark names; raises BadMessage."""
        try:
            return self._of(mark).table_decoder(mode, keys, types)
        except ValueError as error:  # a declared type that is not this format's
            raise BadMessage(f"a record of format {marked_name(mark)}: {error}") from error

    def plain(self, mark: bytes, values: Sequence[bytes]) -> list[bytes]:
        """What records of one mark are to their own format; raises BadMessage."""
        found = self._plain(mark, self._of(mark), values)
        return [_present(each) for each in found] if None in found else found  # type: ignore[return-value]

    def _opened(self, value: bytes | None) -> tuple[Format, bytes | None]:
        mark = _mark_of(value)
        format_ = self._of(mark)
        return format_, self._plain(mark, format_, [_present(value)])[0]

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
        told = confidences(unpack(value))
        other = recognised(told)
        if (
            other not in (None, format_.name)
            and told.get(format_.name, Confidence.NO) <= Confidence.OPEN
        ):
            raise BadMessage(f"a message of {other} in a topic of {format_.name}")

    def _closed(self, value: bytes, format_: Format, made: bytes) -> bytes:
        mark = mark_in(value)
        if format_.keyed:
            return mark + made
        record = unpack(value)
        return mark + pack(record.key, made, record.headers)


class AutoTableDecoder:
    """The ``TableDecoder`` of a target: that of the first record's format, which must be all's."""

    def __init__(
        self,
        owner: AutoFormat,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes,
    ) -> None:
        self._owner = owner
        self._types = types
        self._mode = mode
        self._keys = keys
        self._positions = None if mode is Mode.APPEND else options.extra.get("positions")
        self._mark = b""
        self._inner: TableDecoder | None = None
        self._stored: TableSchema | None = None

    @property
    def schema(self) -> TableSchema | None:
        return None if self._inner is None else self._inner.schema

    def remind(self, stored: TableSchema) -> None:
        """See ``formats.base.Reminded``."""
        self._stored = stored

    @property
    def positions(self) -> str | None:
        return self._positions

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        return self._inner.take_column_changes() if isinstance(self._inner, DeclaresColumns) else ()

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._inner.declared_types if isinstance(self._inner, DeclaresTypes) else {}

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        if not values:
            return None
        try:
            if self._inner is None:
                mark = mark_in(values[0])
                self._inner = self._owner.decoder_of(mark, self._mode, self._keys, self._types)
                self._mark = mark
                if self._stored is not None and isinstance(self._inner, Reminded):
                    self._inner.remind(self._stored)
            for place, value in enumerate(values):
                if not value.startswith(self._mark):
                    raise BadRecord(place, self._other(value))
            plain = self._owner.plain(self._mark, values)
        except BadMessage as bad:
            raise BadRecord(0, str(bad)) from bad
        return self._inner.decode(partition, offsets, plain)

    def _other(self, value: bytes) -> str:
        first, other = marked_name(self._mark), marked_name(mark_in(value))
        return f"a record of {other} in a table that was filled from {first}"


def _check_option(options: FormatOptions, name: str) -> None:
    """Raise ValueError for an option that none of the formats which use it can meet.

    Other formats don't look at it, and so would hide that until a topic is of one that does.
    """
    alone = replace(options, extra={name: options.extra[name]})
    problems = []
    for user in _USED_BY.get(name, FORMATS):
        try:
            FORMATS[user](alone)
        except ValueError as error:
            problems.append(str(error))
        else:
            return
    raise ValueError(problems[0])


def _mark_of(value: bytes | None) -> bytes:
    return mark_in(value or b"")


def _explained(
    bad: BadMessage, format_: Format, values: Sequence[bytes], plain: Sequence[bytes | None]
) -> BadMessage:
    """What was said of the first bad one, and whose it is where it is another format's."""
    for value, each in zip(values, plain, strict=True):
        try:
            format_.peek(each)
        except BadMessage:
            record = unpack(value)
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
    """Whether a format takes any object for a row, as Debezium's does by ``default_table``."""
    row = b'{"a": 1}'
    try:
        format_.peek(pack(None, row) if format_.keyed else row)
    except BadMessage:
        return False
    return True

"""``format = "auto"``: each topic's format is told from its first messages, and stays.

Once it is told, a record of the topic carries its format's name before it (``base.mark_of``), on
its way to whoever decodes it, and in a spill: so nobody has to tell it twice, nor otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from changes.formats import FORMATS
from changes.formats.base import (
    VALUE_AT,
    Format,
    Packed,
    Parted,
    Piece,
    RowChange,
    Several,
    Sign,
    Statement,
    TableDecoder,
    mark_in,
    mark_of,
    marked_name,
    pack,
    sizes,
    unpack,
)
from changes.formats.glance import members
from changes.model import (
    BadMessage,
    BadRecord,
    Changes,
    Ddl,
    FormatOptions,
    Head,
    Mode,
    TableSchema,
)
from offsets.parts import Part

AUTO = "auto"

NAMES = (AUTO, *sorted(FORMATS))
"""What a configuration may say."""


def make_format(name: str, options: FormatOptions, topics: TopicFormats | None = None) -> Format:
    """Make a format by its configured name; raises ValueError where an option can't be met.

    ``topics``: of ``auto``, the formats told so far; without them it reads marked records alone.
    """
    return AutoFormat(options, topics) if name == AUTO else FORMATS[name](options)


def signs(record: Packed) -> dict[str, Sign]:
    """What each format says of a record, of those that don't rule it out."""
    told = {name: kind.recognise(record) for name, kind in FORMATS.items()}
    return {name: sign for name, sign in told.items() if sign is not Sign.NO}


def recognised(told: Mapping[str, Sign]) -> str | None:
    """The format of a record by what all say of it: the one that is surest, if it is likely.

    None where none is, or two are equally sure.
    """
    best = max(told.values(), default=Sign.NO)
    if best < Sign.LIKELY:
        return None
    names = [name for name, sign in told.items() if sign is best]
    return names[0] if len(names) == 1 else None


def shape_of(record: Packed) -> str:
    """What a record looks like, for an error: names of members and sizes, no values."""
    value = record.value
    if value is None:
        return "no value"
    if not value.strip():
        return "an empty value"
    found = members(value)
    if found:
        names = ", ".join(sorted(found)[:_NAMES_SHOWN])
        return f"an object of {names}{', …' if len(found) > _NAMES_SHOWN else ''}"
    return f"{len(value)} bytes that begin with {value[:_BYTES_SHOWN].hex(' ')}"


def unclear(records: Iterable[Packed]) -> str:
    """What came of which no format can be told, and which formats it may be of."""
    shapes: Counter[str] = Counter()
    may: Counter[str] = Counter()
    for record in records:
        shapes[shape_of(record)] += 1
        may.update(signs(record).keys())
    seen = "; ".join(f"{shape} ({count})" for shape, count in shapes.most_common(_SHAPES_SHOWN))
    more = f"; and {len(shapes) - _SHAPES_SHOWN} others" if len(shapes) > _SHAPES_SHOWN else ""
    names = ", ".join(f"{name} ({count})" for name, count in may.most_common())
    return f"{seen}{more}; it may be of {names or 'none that is known'}"


_SHAPES_SHOWN = 3
_NAMES_SHOWN = 8
_BYTES_SHOWN = 8


class TopicFormats:
    """The formats of a pipeline's topics, as far as they were told. None ever changes.

    Written by the fetcher's thread, before anything of the topic goes to anybody; read by any.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})

    def of(self, topic: str) -> str | None:
        """The topic's format, None where it was not told yet."""
        return self._known.get(topic)

    def choose(self, topic: str, name: str) -> None:
        """Note a topic's format."""
        if self._known.setdefault(topic, name) != name:
            raise ValueError(f"the format of {topic} is {self._known[topic]} already, not {name}")

    @property
    def known(self) -> Mapping[str, str]:
        """All of them."""
        return dict(self._known)


class AutoFormat:
    """The ``Format`` of topics whose formats are told from their messages.

    Records come packed and marked, whatever format they are of. Raises ValueError where no format
    can meet the options.
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
        self._anything = {m for m, each in self._formats.items() if _reads_anything(each)}

    @staticmethod
    def recognise(record: Packed) -> Sign:
        """As sure as the surest of all formats."""
        return max(signs(record).values(), default=Sign.NO)

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
        return value is None or isinstance(self._formats.get(mark_in(value)), Parted)

    # --- a Format, and what it may also be

    def peek(self, value: bytes | None) -> Head:
        return next(self.heads([value]))

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        for mark, group in groupby(values, lambda value: mark_in(value or b"")):
            format_ = self._of(mark)
            yield from format_.heads(self._plain(mark, format_, value) for value in group)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        format_, plain = self._opened(value)
        return format_.ddl(_present(plain))

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        format_, plain = self._opened(value)
        return format_.explain(plain)

    def table_decoder(self, mode: Mode, keys: tuple[str, ...] | None) -> AutoTableDecoder:
        return AutoTableDecoder(self, self._options, mode, keys)

    def pieces(self, value: bytes) -> Sequence[Piece]:
        format_, plain = self._opened(value)
        assert isinstance(format_, Several)
        return format_.pieces(_present(plain))

    def joined(self, value: bytes, pieces: Sequence[bytes]) -> bytes:
        format_, plain = self._opened(value)
        assert isinstance(format_, Several)
        return self._closed(value, format_, format_.joined(_present(plain), pieces))

    def part(self, value: bytes) -> tuple[str, Part] | None:
        format_, plain = self._opened(value)
        return format_.part(_present(plain)) if isinstance(format_, Parted) else None

    def running(self, value: bytes) -> tuple[str, int | None]:
        format_, plain = self._opened(value)
        return format_.running(_present(plain)) if isinstance(format_, Parted) else ("", None)

    def whole(self, value: bytes, data: bytes) -> bytes:
        format_, plain = self._opened(value)
        assert isinstance(format_, Parted)
        return self._closed(value, format_, format_.whole(_present(plain), data))

    # --- marks

    def decoder_of(self, mark: bytes, mode: Mode, keys: tuple[str, ...] | None) -> TableDecoder:
        """The decoder of the format that a mark names; raises BadMessage."""
        return self._of(mark).table_decoder(mode, keys)

    def plain(self, value: bytes) -> bytes | None:
        """What a record is to its own format; raises BadMessage."""
        return self._opened(value)[1]

    def _opened(self, value: bytes | None) -> tuple[Format, bytes | None]:
        mark = mark_in(value or b"")
        format_ = self._of(mark)
        return format_, self._plain(mark, format_, value)

    def _of(self, mark: bytes) -> Format:
        found = self._formats.get(mark)
        if found is not None:
            return found
        if not mark:
            raise BadMessage("a record of a topic whose format is not known")
        name = marked_name(mark)
        raise BadMessage(f"a record of format {name}: {self.problem(name)}")

    def _plain(self, mark: bytes, format_: Format, value: bytes | None) -> bytes | None:
        assert value is not None
        if mark in self._anything:
            self._check(format_, value)
        if format_.keyed:
            return value[len(mark) :]
        size = sizes(value, len(mark))[0]
        at = len(mark) + VALUE_AT
        return None if size < 0 else value[at : at + size]

    def _check(self, format_: Format, value: bytes) -> None:
        """Raises BadMessage for another format's message, which this one would take for a row."""
        told = signs(unpack(value))
        other = recognised(told)
        if other not in (None, format_.name) and told.get(format_.name, Sign.NO) <= Sign.OPEN:
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
        self, owner: AutoFormat, options: FormatOptions, mode: Mode, keys: tuple[str, ...] | None
    ) -> None:
        self._owner = owner
        self._mode = mode
        self._keys = keys
        self._positions = None if mode is Mode.APPEND else options.extra.get("positions")
        self._mark = b""
        self._inner: TableDecoder | None = None

    @property
    def schema(self) -> TableSchema | None:
        return None if self._inner is None else self._inner.schema

    @property
    def positions(self) -> str | None:
        return self._positions

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        plain: list[bytes] = []
        for place, value in enumerate(values):
            try:
                plain.append(self._opened(value))
            except BadMessage as bad:
                raise BadRecord(place, str(bad)) from bad
        return None if self._inner is None else self._inner.decode(partition, offsets, plain)

    def _opened(self, value: bytes) -> bytes:
        mark = mark_in(value)
        if self._inner is None:
            self._inner = self._owner.decoder_of(mark, self._mode, self._keys)
            self._mark = mark
        if mark != self._mark:
            first, other = marked_name(self._mark), marked_name(mark)
            raise BadMessage(f"a record of {other} in a table that was filled from {first}")
        return _present(self._owner.plain(value))


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

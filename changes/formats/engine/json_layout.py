"""The layout of rows that are objects of typed JSON values, one a message.

A value is read by its JSON type, but numbers with a fraction stay the text of the message: none
passes through a float. A column that ever held an object or a list is a document: its value is the
bytes of the message.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from changes.formats.engine.assemble import Text, as_texts
from changes.formats.engine.configured_types import NOTHING_CONFIGURED, ConfiguredTypes
from changes.formats.engine.json_text import text_of
from changes.formats.engine.layout import Layout, Refused
from changes.model.types import TEXT, SourceType

_value = msgspec.json.Decoder(float_hook=str)

_NULL = {type(None)}
_TEXT = {str}
_DOCUMENTS = {dict, list}

MessageType = Callable[[type[Struct]], type[Struct]]
"""Makes the struct of a format's message out of that of its rows."""


class JsonLayout(Layout):
    """``documents`` are the columns that hold objects or lists. ``old`` is not needed here: the old
    row of an update is an image like any other."""

    def __init__(
        self,
        message: MessageType,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        declared: Mapping[str, str],
        documents: Iterable[str] = (),
        configured: ConfiguredTypes = NOTHING_CONFIGURED,
    ) -> None:
        self._message = message
        self.documents = frozenset(documents)
        fields = {f"f{place}" for place, name in enumerate(columns) if name in self.documents}
        self._document_fields = frozenset(fields)
        super().__init__(columns, keys, declared, configured=configured)
        self.kinds = list(self.columns.values())

    def message_type(self) -> type[Struct]:
        return self._message(self.row)

    def decoder(self, message: type[Struct]) -> Callable[[bytes], Any]:
        decode = msgspec.json.Decoder(message, float_hook=str).decode
        if not self.documents:
            return decode

        def checked(text: bytes) -> Any:
            str(text, "utf-8")  # nothing looks into a document
            return decode(text)

        return checked

    def cell(self, field: str) -> Any:
        return Raw | UnsetType if field in self._document_fields else Any

    def rebuilt(
        self,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        known: Iterable[bytes],
    ) -> Self:
        return type(self)(
            self._message, columns, keys, self.declared, self.documents, self.configured
        )

    def with_documents(self, names: Iterable[str]) -> Self:
        """The layout that reads these columns as bytes of the message."""
        documents = self.documents.union(names)
        return type(self)(
            self._message, self.columns, self.keys, self.declared, documents, self.configured
        )

    def row_of(self, values: Mapping[str, Raw]) -> Struct:
        """Make a row of raw values; unknown columns are left out. Raises Refused."""
        return self.row(
            **{
                field: (_document if name in self.documents else plain_value)(values[name])
                for name, field in self.fields.items()
                if name in values
            }
        )

    def texts(self, rows: Sequence[Struct]) -> list[Text]:
        """The rows' columns as text; raises Documents where a column holds an object or list."""
        columns = list(zip(*map(msgspec.structs.astuple, rows), strict=True))
        seen = [set(map(type, values)) - _NULL for values in columns]
        found: list[Text | None] = [None] * len(columns)
        plain = [place for place, types in enumerate(seen) if types <= _TEXT]
        together = as_texts([columns[place] for place in plain]) if plain else []
        for place, text in zip(plain, together, strict=True):
            found[place] = text
        names = list(self.columns)
        strange = [names[place] for place, types in enumerate(seen) if types & _DOCUMENTS]
        if strange:
            raise Documents(strange)
        return [
            _as_text(columns[place], seen[place], kind) if text is None else text
            for place, (text, kind) in enumerate(zip(found, self.kinds, strict=True))
        ]


class Documents(Exception):
    """These columns hold objects or lists and were not read as such."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def is_document(raw: Raw) -> bool:
    """Whether a value is an object or a list."""
    return bytes(raw)[:1] in (b"{", b"[")


def _document(raw: Raw) -> Raw:
    """A value as it stands; raises Refused where it is not valid text."""
    text_of(bytes(raw), TEXT)
    return raw


def plain_value(raw: Raw) -> object:
    """A value as a layout's decoder reads it; raises Refused where it is not valid JSON, or not
    valid text."""
    try:
        return _value.decode(raw)
    except UnicodeDecodeError as error:
        raise Refused(f"a value is not valid text: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"a value is not valid JSON: {error}") from error


def _as_text(values: Sequence[object], seen: set[type], kind: SourceType) -> Text:
    """One column's values, of these types beside null, as text."""
    if UnsetType in seen:
        carried = pa.array([value is not UNSET for value in values])
        given = [None if value is UNSET else value for value in values]
        return Text(_as_text(given, seen - {UnsetType}, kind).values, carried)
    if seen == {int}:
        try:
            return Text(pa.array(values, pa.int64()).cast(pa.string()), None)
        except (OverflowError, pa.ArrowInvalid):
            pass  # beyond 64 bits: each by itself
    return Text(pa.array([_text(value, kind) for value in values], pa.string()), None)


def _text(value: object, kind: SourceType) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            word = "true" if value else "false"
            return word if kind == TEXT else str(int(value))
        case Raw():
            return text_of(bytes(value), kind)
        case _:
            return str(value)


# Rows beside what they replaced: changed keys, nulls that were left out.

_INSERT, _UPDATE = b"IU"


def may_move(layout: JsonLayout, ops: bytes, rows: Sequence[Struct], olds: Sequence[Any]) -> bool:
    """Whether a row may have another key than before; False is sure."""
    old_type = layout.row
    pairs = [
        (row, old)
        for op, row, old in zip(ops, rows, olds, strict=True)
        if op == _UPDATE and isinstance(old, old_type)
    ]
    if not pairs:
        return False
    after, before = zip(*pairs, strict=True)
    for field in layout.key_fields:
        get = operator.attrgetter(field)
        was = list(map(get, before))
        if was.count(UNSET) < len(was) and list(map(get, after)) != was:
            return True
    return False


def with_nulls(
    layout: JsonLayout, ops: bytes, olds: Sequence[Any], texts: Sequence[Text]
) -> list[Text]:
    """Where nulls are left out: an insert has every column, an update what it had before."""
    inserted: pa.Array | None = None
    found: list[Text] = []
    for field, text in zip(layout.fields.values(), texts, strict=True):
        if text.carried is None:
            found.append(text)
            continue
        if inserted is None:
            inserted = pa.array([op == _INSERT for op in ops])
        had = [isinstance(old, layout.row) and getattr(old, field) is not UNSET for old in olds]
        found.append(Text(text.values, pc.or_(text.carried, pc.or_(inserted, pa.array(had)))))
    return found


def with_olds(
    layout: JsonLayout, ops: bytes, rows: Sequence[Struct], olds: Sequence[Any]
) -> list[Struct]:
    """Rows of a changelog: what an update lacks, but what it replaced has, did not change."""
    found = list(rows)
    for place, (op, old) in enumerate(zip(ops, olds, strict=True)):
        if op != _UPDATE or not isinstance(old, layout.row):
            continue
        values = astuple(rows[place])
        if UNSET in values:
            pairs = zip(values, astuple(old), strict=True)
            found[place] = layout.row(*[was if now is UNSET else now for now, was in pairs])
    return found

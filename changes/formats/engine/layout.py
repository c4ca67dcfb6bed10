"""What is known of a target's columns so far, and the msgspec structs made for just those.

A layout only ever grows: a block of types that is sent again narrower, or with columns missing
(minimal row images list only what they carry), takes nothing away. So one decoder serves all the
messages of a table, in whatever order their shapes come.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

import msgspec
import pyarrow as pa
from msgspec import UNSET, Struct, UnsetType

from changes.formats.engine.assemble import Text, texts_of
from changes.formats.engine.configured_types import NOTHING_CONFIGURED, ConfiguredTypes
from changes.model.model import CHANGELOG_NAMES, Column, TableSchema
from changes.model.types import TEXT, SourceType, TextForm, widen
from changes.sql.mysql.types import from_mysql
from changes.sql.text_forms import lacks_digits

_RESERVED_PREFIX = "__binlogd_"
_OF_CHANGELOGS = frozenset(CHANGELOG_NAMES)

_KNOWN_TEXTS = 1024
"""Type blocks remembered by their bytes. Minimal images of a wide table come in many shapes:
fewer means parsing some again (5 µs each), more only costs memory."""


class Refused(Exception):
    """A message can't be applied: the reason, without the table's name."""


class Unfit(Refused):
    """A message's columns or key don't go together with those of the messages before it."""


class Layout(abc.ABC):
    """Columns with their types, the key, and the structs that read a message of these.

    ``keys`` is None until a message has named them; an empty key makes a changelog.
    ``configured`` are the types of columns whose type no message declares. Immutable, but for
    ``known``, which saves work, and ``declared``, which names types in errors.
    Each format defines by ``message_type`` what a message with such rows is.
    """

    def __init__(
        self,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        declared: Mapping[str, str],
        known: Iterable[bytes] = (),
        configured: ConfiguredTypes = NOTHING_CONFIGURED,
    ) -> None:
        self.columns: Final = dict(columns)
        self.keys: Final = keys
        self.declared: Final = dict(declared)
        self.known: Final = set(known)
        self.configured: Final = configured
        self.fields: Final = {name: f"f{place}" for place, name in enumerate(columns)}
        names = {field: json_name(name, field) for name, field in self.fields.items()}
        self.row: Final = self._struct("Row", self.fields.values(), names, strict=True)
        self.key_fields: Final = [self.fields[key] for key in keys or () if key in self.fields]
        self.old: Final = self._struct("Old", self.key_fields, names, strict=False)
        self.no_key: Final = self.old()
        self.decode: Final[Callable[[bytes], Any]] = self.decoder(self.message_type())

    @abc.abstractmethod
    def message_type(self) -> type[Struct]:
        """Make the struct of a message whose rows are ``row`` and old keys ``old``."""

    def decoder(self, message: type[Struct]) -> Callable[[bytes], Any]:
        """Make the function that reads one message."""
        return msgspec.json.Decoder(message).decode

    def cell(self, field: str) -> Any:
        """The type of a field's values in a message; UNSET is an absent value."""
        return str | None | UnsetType

    def rebuilt(
        self,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        known: Iterable[bytes],
    ) -> Self:
        """Make another layout of this kind."""
        return type(self)(columns, keys, self.declared, known, self.configured)

    def _struct(
        self, title: str, fields: Iterable[str], names: Mapping[str, str], *, strict: bool
    ) -> type[Struct]:
        return msgspec.defstruct(
            title,
            [(field, self.cell(field), UNSET) for field in fields],
            rename=dict(names),
            gc=False,
            forbid_unknown_fields=strict,
        )

    @property
    def schema(self) -> TableSchema:
        columns = tuple(Column(name, kind.arrow) for name, kind in self.columns.items())
        return TableSchema(columns, self.keys or ())

    @property
    def declared_types(self) -> Mapping[str, str]:
        """By column its type in the messages' words; without configured types."""
        others = self.configured.types
        return {name: each for name, each in self.declared.items() if name.lower() not in others}

    def texts(self, rows: Sequence[Struct]) -> list[Text]:
        """Rows as columns of text, in the order of the layout's."""
        return texts_of(rows)

    def gone(self, before: Struct, after: Struct) -> Struct:
        """Make the row that deletes the old key of an update."""
        row = self.row(**dict.fromkeys(self.fields.values()))
        for field in self.key_fields:
            old = getattr(before, field)
            setattr(row, field, getattr(after, field) if old is UNSET else old)
        return row

    def complete_key(self, before: Struct, after: Struct) -> None:
        """Add the parts of its key that an updated row lacks: they did not change."""
        for field in self.key_fields:
            if getattr(after, field) is UNSET:
                setattr(after, field, getattr(before, field))

    def moves(self, before: Struct, after: Struct) -> bool:
        """Whether an update changed the key; what it reports without a change is not one."""
        return any(
            getattr(before, field) is not UNSET and getattr(before, field) != getattr(after, field)
            for field in self.key_fields
        )

    def key_of(self, row: Struct) -> tuple[object, ...]:
        """A row's key."""
        return tuple([getattr(row, field) for field in self.key_fields])

    def beside_key(self, row: Struct) -> dict[str, tuple[object, pa.DataType | None]]:
        """A row's other values and their types, as ``key_runs.Values``."""
        others = [(name, f) for name, f in self.fields.items() if f not in self.key_fields]
        return {name.lower(): (getattr(row, f), self.columns[name].arrow) for name, f in others}

    def with_keys(self, keys: tuple[str, ...]) -> Self:
        """Set the key; raises Refused where a column has a name that the changelog needs."""
        for name in self.columns:
            check_name(name, (), keys)
        return self.rebuilt(self.columns, keys, self.known)

    def with_stored(self, stored: TableSchema) -> Self:
        """The same, for a table with these columns."""
        return self

    def type_of_stored(self, column: Column) -> pa.DataType:
        """The type of a column that only the target has so far."""
        return (self.configured.type_of(column.name) or TEXT).arrow

    def knows(self, carried: Iterable[str], text: bytes) -> bool:
        """Whether ``grown`` would certainly return this same layout."""
        return text in self.known and all(name in self.columns for name in carried)

    def grown(self, types: Mapping[str, str], carried: Iterable[str], text: bytes) -> Self:
        """The layout that also has these columns; raises Refused where there is none.

        ``types`` is the message's type block, ``text`` its bytes, ``carried`` its rows' columns in
        order. A column without a type there has the configured one, else text, or stays.
        """
        columns = dict(self.columns)
        same_words = True
        for name in (*carried, *types):
            declared = types.get(name)
            seen = None if declared is None else self._seen(name, declared)
            stored = columns.get(name)
            if stored is None:
                check_name(name, columns, self.keys)
                columns[name] = self._first(name, seen, declared)
            elif seen is not None:
                columns[name] = self._wider(name, stored, seen, declared)
                same_words &= _same_words(stored, columns[name])
        self.declared.update(types)
        if columns == self.columns:
            if len(self.known) >= _KNOWN_TEXTS:
                self.known.clear()
            self.known.add(text)
            return self
        # Where a number means another label now, the blocks known so far are of other columns.
        known = (*self.known, text) if same_words else (text,)
        return self.rebuilt(columns, spelled(self.keys, columns), known)

    def _seen(self, name: str, declared: str) -> SourceType:
        """A message's type; a decimal without digits has those of the configuration."""
        own = self.configured.type_of(name)
        if own is not None and pa.types.is_decimal(own.arrow) and lacks_digits(declared):
            return own
        return from_mysql(declared)

    def _first(self, name: str, seen: SourceType | None, declared: str | None) -> SourceType:
        """The type of a column that is new here."""
        configured = self.configured.type_of(name)
        if configured is None:
            return TEXT if seen is None else seen
        self.declared.setdefault(name, self.configured.words_of(name) or "")
        if seen is not None and configured == TEXT and seen.form is not TextForm.BYTES:
            return _as_text(seen)
        return configured if seen is None else self._wider(name, configured, seen, declared)

    def _wider(
        self, name: str, stored: SourceType, seen: SourceType, declared: str | None
    ) -> SourceType:
        if self.configured.type_of(name) == TEXT and seen.form is not TextForm.BYTES:
            seen = _as_text(seen)
        wider = widen(stored.arrow, seen.arrow)
        if wider is None:
            was = self.declared.get(name, "text of no declared type")
            error = Unfit if name in self.columns else Refused
            raise error(
                f"{name}: the type {was} ({stored.arrow}) can't become {declared} ({seen.arrow}) "
                f"in the lake"
            )
        if seen.form is stored.form and _begins(stored.labels, seen.labels):
            return replace(stored, arrow=wider)
        return replace(seen, arrow=wider)


class RowLayout(Layout):
    """The layout of rows that are not read by msgspec."""

    def message_type(self) -> type[Struct]:
        return self.row


def _as_text(seen: SourceType) -> SourceType:
    """The type of a column that is configured as text: its values as they come, labels as such."""
    return replace(seen, arrow=TEXT.arrow)


def _begins(labels: tuple[str, ...], part: tuple[str, ...]) -> bool:
    """Fewer labels, none of them moved: numbers mean what they meant."""
    return labels[: len(part)] == part


def _same_words(stored: SourceType, now: SourceType) -> bool:
    """Whether both types read a text alike."""
    return stored.form is now.form and _begins(now.labels, stored.labels)


def decoded(decode: Callable[[bytes], Any], texts: Iterable[bytes]) -> list[Any]:
    """Decode messages up to the first that ``decode`` does not take."""
    messages: list[Any] = []
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        # Those before an error stay: a list grows as it takes from an iterator.
        messages.extend(map(decode, texts))
    return messages


def other_key(was: tuple[str, ...], now: tuple[str, ...]) -> Refused:
    """The error of a message whose key is not the table's.

    Without any key it is a bad message of its table; with another one the table has changed.
    """
    reason = f"the key was {_list(was)} and is now {_list(now)}"
    return Unfit(reason) if now else Refused(reason)


def _list(keys: tuple[str, ...]) -> str:
    return f"({', '.join(keys)})" if keys else "none"


def check_name(name: str, others: Iterable[str], keys: tuple[str, ...] | None) -> None:
    """Raise Refused for a reserved name, Unfit where it differs from another one by case only.

    The lake has one column for both. So has the source, where it respells the column: a new
    decoder takes the new spelling. Both spellings at once are refused by that one, too.
    """
    lower = name.lower()
    if lower.startswith(_RESERVED_PREFIX) or (keys == () and lower in _OF_CHANGELOGS):
        raise Refused(f"the column name {name} is one that binlogd needs for itself")
    for other in others:
        if other.lower() == lower:
            raise Unfit(f"the column names {other} and {name} differ by case only")


def spelled(keys: tuple[str, ...] | None, columns: Collection[str]) -> tuple[str, ...] | None:
    """The key's columns as the messages spell them; the configuration may differ by case."""
    if keys is None or all(key in columns for key in keys):
        return keys
    lower = {name.lower(): name for name in columns}
    return tuple(key if key in columns else lower.get(key.lower(), key) for key in keys)


def json_name(name: str, field: str) -> str:
    """The name, but for one that msgspec can't match: rows with such a column are read slowly."""
    matched = name.isprintable() and '"' not in name and "\\" not in name
    return name if matched else f"{field} "

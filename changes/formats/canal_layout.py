"""What is known of a target's columns so far, and the msgspec decoder made for just those.

A layout only ever grows: a block of types that is sent again narrower, or with columns missing
(minimal row images list only what they carry), takes nothing away. So one decoder serves all the
messages of a table, in whatever order their shapes come.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from changes.model import CHANGELOG_COLUMNS, Column, TableSchema
from changes.mysql_types import from_mysql
from changes.types import TEXT, SourceType, widen

_RESERVED_PREFIX = "__binlogd_"
_CHANGELOG_NAMES = frozenset(name for name, _ in CHANGELOG_COLUMNS)

_KNOWN_TEXTS = 1024
"""Type blocks remembered by their bytes. Minimal images of a wide table come in many shapes:
fewer means parsing some again (5 µs each), more only costs memory."""


LETTERS = {"INSERT": "I", "INIT": "I", "UPDATE": "U", "DELETE": "D"}
"""What happened to a row, by the type of its message."""


class Refused(Exception):
    """A message can't be applied: the reason, without the table's name."""


class HandleKey(Struct, gc=False):
    """TiCDC's own part of a message: when its transaction was committed, and the mark on a message
    that was too large and was cut down to its key."""

    onlyHandleKey: bool = False
    claimCheckLocation: str | None = None
    commitTs: int | None = None


class Layout:
    """Columns with their types, the key, and the structs that read a message of these.

    ``keys`` is None until a message has told them; an empty key makes a changelog. Not changed
    once made, but for ``known`` and ``declared``, which only save work and name types in errors.
    """

    def __init__(
        self,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        declared: Mapping[str, str],
        known: Iterable[bytes] = (),
    ) -> None:
        self.columns: Final = dict(columns)
        self.keys: Final = keys
        self.declared: Final = dict(declared)
        self.known: Final = set(known)
        self.fields: Final = {name: f"f{place}" for place, name in enumerate(columns)}
        names = {field: json_name(name, field) for name, field in self.fields.items()}
        self.row: Final = _struct("Row", self.fields.values(), names, strict=True)
        self.key_fields: Final = [self.fields[key] for key in keys or () if key in self.fields]
        self.old: Final = _struct("Old", self.key_fields, names, strict=False)
        self.no_key: Final = self.old()
        self.decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(self._message()).decode

    def _message(self) -> type[Struct]:
        row: Any = self.row
        old: Any = self.old
        # In the order in which Canal writes them: msgspec then finds each at its first guess.
        fields: list[tuple[str, Any, Any]] = [
            ("data", list[row] | None, None),
            ("mysqlType", Raw, Raw()),
            ("old", list[old | None] | None, None),
            ("pkNames", Raw, Raw()),
            ("type", str, ""),
            ("tidb", HandleKey | None, None),
            ("updateBefore", list[Any] | None, None),
        ]
        names = {"tidb": "_tidb"}
        if not self.keys:
            # A changelog has no use for these: they get names that no member has.
            names |= {"old": "old ", "updateBefore": "updateBefore "}
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    @property
    def schema(self) -> TableSchema:
        columns = tuple(Column(name, kind.arrow) for name, kind in self.columns.items())
        return TableSchema(columns, self.keys or ())

    def getter(self, name: str) -> Callable[[Struct], object]:
        return operator.attrgetter(self.fields[name])

    def gone(self, before: Struct, after: Struct) -> Struct:
        """Make the row that stands for the key which an update left."""
        row = self.row(**dict.fromkeys(self.fields.values()))
        for field in self.key_fields:
            old = getattr(before, field)
            setattr(row, field, getattr(after, field) if old is UNSET else old)
        return row

    def complete_key(self, before: Struct, after: Struct) -> None:
        """Give an updated row the parts of its key that it lacks: they did not change."""
        for field in self.key_fields:
            if getattr(after, field) is UNSET:
                setattr(after, field, getattr(before, field))

    def moves(self, before: Struct, after: Struct) -> bool:
        """Tell whether an update changed the key; what it reports without a change is not one."""
        return any(
            getattr(before, field) is not UNSET and getattr(before, field) != getattr(after, field)
            for field in self.key_fields
        )

    def names_key(self, olds: Sequence[Struct | None]) -> bool:
        """Tell whether any old image holds a key column: most updates' don't."""
        return olds.count(None) + olds.count(self.no_key) < len(olds)

    def keeps_keys(
        self,
        ops: Sequence[str | None],
        data: Sequence[Sequence[Struct]],
        olds: Sequence[Sequence[Struct | None] | None],
    ) -> bool:
        """Tell whether the updates among these messages surely changed no key.

        False: it takes a look at each row to know.
        """
        if not self.names_key(list(itertools.chain.from_iterable(filter(None, olds)))):
            return True
        # Some tools send the whole old row. Only where each row has one do they stand in pairs.
        updates = [op == "U" for op in ops]
        after = list(itertools.compress(data, updates))
        before = [old or () for old in itertools.compress(olds, updates)]
        if list(map(len, before)) != list(map(len, after)):
            return False
        images = list(itertools.chain.from_iterable(before))
        if None in images:
            return False
        key = operator.attrgetter(*self.key_fields)
        return list(map(key, images)) == list(map(key, itertools.chain.from_iterable(after)))

    def with_keys(self, keys: tuple[str, ...]) -> Layout:
        """Fix the key; raises Refused where a column has a name that the changelog needs."""
        for name in self.columns:
            check_name(name, (), keys)
        return Layout(self.columns, keys, self.declared, self.known)

    def grown(self, types: Mapping[str, str], carried: Iterable[str], text: bytes) -> Layout:
        """Give the layout that also holds these columns; raises Refused where none can.

        ``types`` is the message's type block and ``text`` its bytes; ``carried`` are the columns
        that its rows name, in their order. Without a type there a column is text, or stays what
        it is.
        """
        columns = dict(self.columns)
        same_words = True
        for name in (*carried, *types):
            declared = types.get(name)
            seen = None if declared is None else from_mysql(declared)
            stored = columns.get(name)
            if stored is None:
                check_name(name, columns, self.keys)
                columns[name] = TEXT if seen is None else seen
            elif seen is not None:
                columns[name] = self._wider(name, stored, seen, declared)
                same_words &= _same_words(stored, columns[name])
        self.declared.update(types)
        if columns == self.columns:
            if len(self.known) >= _KNOWN_TEXTS:
                self.known.clear()
            self.known.add(text)
            return self
        # Where a number stands for another label now, the blocks known so far mean other columns.
        known = (*self.known, text) if same_words else (text,)
        return Layout(columns, self.keys, self.declared, known)

    def _wider(
        self, name: str, stored: SourceType, seen: SourceType, declared: str | None
    ) -> SourceType:
        wider = widen(stored.arrow, seen.arrow)
        if wider is None:
            was = self.declared.get(name, "text of no declared type")
            raise Refused(
                f"{name}: the type {was} ({stored.arrow}) can't become {declared} ({seen.arrow}) "
                f"in the lake"
            )
        if seen.reading is stored.reading and _begins(stored.labels, seen.labels):
            return replace(stored, arrow=wider)
        return replace(seen, arrow=wider)


def _begins(labels: tuple[str, ...], part: tuple[str, ...]) -> bool:
    """Fewer labels, none of them moved: numbers mean what they meant."""
    return labels[: len(part)] == part


def _same_words(stored: SourceType, now: SourceType) -> bool:
    """Tell whether what ``stored`` read is read alike by ``now``."""
    return stored.reading is now.reading and _begins(now.labels, stored.labels)


def check_name(name: str, others: Iterable[str], keys: tuple[str, ...] | None) -> None:
    """Raise Refused for a name that is ours, or differs from another's by case only."""
    lower = name.lower()
    if lower.startswith(_RESERVED_PREFIX) or (keys == () and lower in _CHANGELOG_NAMES):
        raise Refused(f"the column name {name} is one that binlogd needs for itself")
    for other in others:
        if other.lower() == lower:
            raise Refused(f"the column names {other} and {name} differ by case only")


def json_name(name: str, field: str) -> str:
    """A name that msgspec can't match gets one that no MySQL column has (it ends in a space).

    Rows with such a column take the careful way.
    """
    matched = name.isprintable() and '"' not in name and "\\" not in name
    return name if matched else f"{field} "


def _struct(
    title: str, fields: Iterable[str], names: Mapping[str, str], *, strict: bool
) -> type[Struct]:
    text: Any = str | None | UnsetType
    return msgspec.defstruct(
        title,
        [(field, text, UNSET) for field in fields],
        rename=dict(names),
        gc=False,
        forbid_unknown_fields=strict,
    )

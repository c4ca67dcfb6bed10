"""Remembers the shapes of records that were read slowly, to read others like them fast.

A schema block is most of a record, and has the same bytes in every record of a table: it is
compared, not parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import Raw

from changes.decoding.layout import json_name
from changes.formats.base import VALUE_AT, sizes
from changes.formats.debezium.parts import announces

_BRACE = ord("}")

_MOST = 8
"""Beginnings remembered. Fewer: tables that share a target take the slow path. More: each costs a
comparison."""


@dataclass(slots=True)
class Shapes:
    """The beginnings of payloads and keys of one target."""

    payloads: list[bytes] = field(default_factory=list)
    """The bytes before a wrapped payload, the latest first."""
    bare: bool = False
    """Whether envelopes come without a wrapping."""
    keys: tuple[bytes, ...] = ()
    """The bytes before the columns of a wrapped key, the latest first."""
    bare_key: Any = None
    """The decoder of a key that is not wrapped; it accepts only these columns."""
    bare_names: tuple[str, ...] = ()
    """The names of the columns of such a key."""
    keyless: bool = False
    added: tuple[str, ...] | None = None
    """The members of flattened rows that are no columns; None: records are envelopes."""

    def copy(self) -> Shapes:
        """A copy that can be changed independently."""
        return replace(self, payloads=[*self.payloads])

    def cut(self, values: Sequence[bytes], *, check_keys: bool) -> tuple[list[bytes], list[bytes]]:
        """The payloads of the first packed records, as many as have a known beginning, and those of
        their keys that ``bare_key`` still has to check.

        A single loop, as cheap as possible: it takes half as long as the decoding.
        """
        payloads: list[bytes] = []
        keys: list[bytes] = []
        known_keys, prefix = self.keys, self.payloads[0] if self.payloads else b""
        begin, tail = VALUE_AT + len(prefix), 1 if prefix else 0
        if not prefix and not self.bare:
            return payloads, keys
        for packed, (size, key_size, headers_size) in zip(values, map(sizes, values), strict=True):
            end = VALUE_AT + size
            if prefix and not packed.startswith(prefix, VALUE_AT):
                prefix = next((p for p in self.payloads if packed.startswith(p, VALUE_AT)), b"")
                if not prefix and not self.bare:
                    break
                begin, tail = VALUE_AT + len(prefix), 1 if prefix else 0
            if (tail and packed[end - 1] != _BRACE) or (headers_size and announces(packed)):
                break
            if check_keys:
                if key_size < 0:
                    if not self.keyless:
                        break
                elif not known_keys or not packed.startswith(known_keys, end):
                    if self.bare_key is None:
                        break
                    keys.append(packed[end : end + key_size])
            # A wrapped payload ends one byte before the value does.
            payloads.append(packed[begin : end - tail])
        return payloads, keys

    def learn_payload(self, prefix: bytes, added: tuple[str, ...] | None) -> None:
        """Remember the bytes before a payload (none where it is bare), and its added members."""
        if added != self.added:
            self.payloads.clear()
            self.bare, self.added = False, added
        if not prefix:
            self.bare = True
        elif prefix not in self.payloads:
            self.payloads[:] = [prefix, *self.payloads[: _MOST - 1]]

    def learn_key(self, prefix: bytes | None, names: Sequence[str]) -> None:
        """Remember the beginning of a key; that of a bare one is empty."""
        if prefix:
            if prefix not in self.keys:
                self.keys = (prefix, *self.keys[: _MOST - 1])
        elif (
            prefix is not None
            and tuple(names) != self.bare_names
            and all(json_name(name, "") == name for name in names)
        ):
            self.bare_names = tuple(names)
            cells = [(f"f{place}", Raw) for place in range(len(names))]
            rename = {f"f{place}": name for place, name in enumerate(names)}
            key = msgspec.defstruct(
                "Key", cells, rename=rename, gc=False, forbid_unknown_fields=True
            )
            self.bare_key = msgspec.json.Decoder(key).decode

"""Shapes of records that were read with care once, so that others of the same go the short way.

A schema block is the same bytes in every record of a table, and most of them: what begins alike is
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
"""Beginnings kept. Fewer: tables that share a target go the long way; more: each costs a look."""


@dataclass(slots=True)
class Shapes:
    """How payloads and keys of one target begin."""

    payloads: list[bytes] = field(default_factory=list)
    """What stands before a payload that is wrapped, the latest first."""
    bare: bool = False
    """Whether envelopes come without a wrapping."""
    keys: tuple[bytes, ...] = ()
    """What stands before the columns of a key that is wrapped, the latest first."""
    bare_key: Any = None
    """The decoder of a key that is not wrapped; it takes just these columns."""
    bare_names: tuple[str, ...] = ()
    """The names of what such a key has."""
    keyless: bool = False
    added: tuple[str, ...] | None = None
    """What flattened rows have beside the columns; None: records are envelopes."""

    def copy(self) -> Shapes:
        """The same, to be changed apart."""
        return replace(self, payloads=[*self.payloads])

    def cut(self, values: Sequence[bytes], *, check_keys: bool) -> tuple[list[bytes], list[bytes]]:
        """The payloads of the first packed records, as many as begin in a known way, and those of
        their keys that ``bare_key`` has still to look at.

        One loop for all, as cheap as can be: it takes half as long as their decoding.
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
        """Take in what stands before a payload (nothing where it is bare), and what that is."""
        if added != self.added:
            self.payloads.clear()
            self.bare, self.added = False, added
        if not prefix:
            self.bare = True
        elif prefix not in self.payloads:
            self.payloads[:] = [prefix, *self.payloads[: _MOST - 1]]

    def learn_key(self, prefix: bytes | None, names: Sequence[str]) -> None:
        """Take in how a key begins; one that is bare has an empty beginning."""
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

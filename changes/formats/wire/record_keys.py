"""The form of record keys in JSON: which columns they have, and how values are spelled.

A producer chooses a record's partition by its key's bytes. So a row's records are in one partition
only while equal keys are equal bytes: the same columns in the same order, the same schema around
them, and values that have one spelling each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from changes.formats.engine.json_text import members
from changes.formats.engine.layout import Refused

_WRAPPED = frozenset(("schema", "payload"))
"""What JsonConverter puts around a key, with ``schemas.enable``."""

_TEXT = rb'"(?:[^"\\\n]|\\.)*+"'
_BETWEEN = b"\0"
_KINDS = {
    "integer": re.compile(rb"0|-?[1-9][0-9]*+"),
    "text": re.compile(rb'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt])*+"'),
    "boolean": re.compile(rb"true|false"),
}
"""Values that have one spelling each. A number with a fraction has many. So has a text with other
escapes: "caf\\u00e9" of one writer is "café" of another, in another partition."""

_MEMBER = re.compile(
    rb"(\s*+(" + _TEXT + rb")\s*+:\s*+)([^\s,:{}\[\]\"]++|" + _TEXT + rb")(\s*+[,}])"
)


_HOLDS_MORE = re.compile(rb"\s*+(" + _TEXT + rb")\s*+:\s*+[{\[]")
_ONE_SPELLING = (
    "only whole numbers, booleans and texts in UTF-8, without the escapes \\u and \\/, have one "
    "spelling each. Have its writer send it so (Python's json: ensure_ascii=False) or as text "
    '(Debezium: decimal.handling.mode = "string"), or keep the table in one partition'
)


@dataclass(frozen=True)
class KeyForm:
    """What all record keys of a table have in common.

    ``columns``: each with the kind of its value. ``pieces``: the bytes before, between and behind
    the values. ``typed``: these hold a schema, or the frame that names one in a registry.
    """

    columns: tuple[tuple[str, str], ...]
    pieces: tuple[bytes, ...]
    typed: bool = False

    @cached_property
    def text(self) -> str:
        """As a target keeps it: the columns, and a fingerprint of all that is around the values."""
        shown = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"{shown} ({hashlib.sha256(_BETWEEN.join(self.pieces)).hexdigest()[:12]})"

    @cached_property
    def _all(self) -> re.Pattern[bytes]:
        one = re.escape(self.pieces[0])
        for (_, kind), piece in zip(self.columns, self.pieces[1:], strict=True):
            one += b"(?:" + _KINDS[kind].pattern + b")" + re.escape(piece)
        return re.compile(b"(?:" + one + b"\n)*+")

    def fits(self, keys: Sequence[bytes]) -> bool:
        """Whether all these keys are spelled so, byte by byte but for their values."""
        return self._all.fullmatch(b"\n".join((*keys, b""))) is not None


def key_form(key: bytes) -> KeyForm:
    """The form of a record key; raises Refused where it can't be read."""
    top = members(key)
    wrapped = top.keys() == _WRAPPED
    schema = bytes(top["schema"]) if wrapped else b"null"
    payload = bytes(top["payload"]) if wrapped else key
    before, _, behind = key.rpartition(payload) if wrapped else (b"", b"", b"")
    named, brace = list[tuple[str, str]](), payload.find(b"{") + 1
    framed = payload[: brace - 1].startswith(b"\0")
    pieces, at = [before + payload[:brace]], brace
    while at < len(payload) and (found := _MEMBER.match(payload, at)) is not None:
        lead, name, value, end = found.groups()
        named.append((json.loads(name), _kind(name, value)))
        pieces[-1] += lead
        pieces.append(end)
        at = found.end()
    if found := _HOLDS_MORE.match(payload, at):
        raise Refused(f"the record key's {json.loads(found[1])} is a structure: {_ONE_SPELLING}")
    plain = framed or not payload[: max(brace - 1, 0)].strip()
    if not (brace and plain and named) or at < len(payload.rstrip()):
        raise Refused(f"the record key {key[:80]!r} is no JSON object of the key's columns")
    pieces[-1] += payload[at:] + behind
    return KeyForm(tuple(named), tuple(pieces), typed=framed or schema != b"null")


def _kind(name: bytes, value: bytes) -> str:
    for kind, spelled in _KINDS.items():
        if spelled.fullmatch(value):
            return kind
    raise Refused(
        f"the record key's {name.decode()} is {value[:40].decode(errors='replace')}: "
        f"{_ONE_SPELLING}"
    )

"""Records of others, damaged at random by a seed: what a decoder must refuse, or read, in time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from changes.formats.engine.format import Format
from changes.model.model import BadMessage, BadRecord, Kind, Mode

_LITERALS = [
    b"null",
    b"-1",
    b"1e400",
    b"NaN",
    b'""',
    b"[]",
    b"{}",
    b"true",
    b'"\\ud800"',
    b"9" * 40,
]
_MOST_BYTES = 200_000


def damaged(values: Sequence[bytes], seed: int) -> bytes:
    """One of the values with a few changes: bits, cuts, repeats, other literals, other values."""
    dice = random.Random(seed)
    value = bytearray(dice.choice(values))
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(value) + 1)
        end = min(len(value), place + dice.choice((1, 1, 2, 8, 64)))
        kind = dice.randrange(6)
        if kind == 0 and place < len(value):
            value[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del value[place:end]
        elif kind == 2 and len(value) < _MOST_BYTES:
            value[place:place] = value[place:end] * dice.choice((1, 2, 300))
        elif kind == 3:
            value[place:end] = dice.choice(_LITERALS)
        elif kind == 4:
            other = dice.choice(values)
            start = dice.randrange(len(other) + 1)
            value[place:end] = other[start : start + 64]
        elif kind == 5 and (colon := value.find(b":", place)) >= 0:
            stop = min((at for at in (value.find(sign, colon) for sign in b",}]") if at > 0),
                       default=len(value))  # fmt: skip
            value[colon + 1 : stop] = dice.choice(_LITERALS)
    return bytes(value)


def survive(format_: Format, value: bytes, mode: Mode, good: Sequence[bytes] = ()) -> str:
    """Have a value looked at, taken apart and decoded behind good ones; tell what became of it.

    BadMessage and BadRecord are what a format may raise; anything else comes out of here.
    """
    try:
        head = format_.peek(value)
        format_.explain(value)
        if head.kind is Kind.DDL:
            format_.ddl(value)
            return "ddl"
        if head.kind is not Kind.ROWS:
            return "nothing"
        values = [*good, value]
        format_.table_decoder(mode, None).decode(0, range(len(values)), values)
    except BadMessage:
        return "bad message"
    except BadRecord as bad:
        if not 0 <= bad.index <= len(good):
            raise IndexError(bad.index) from bad
        return "bad record"
    return "rows"

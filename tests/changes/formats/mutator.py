"""Damages messages in ways that a seed decides, and reads them in all ways that a format offers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from changes.formats.engine.format import Format
from changes.model.model import BadMessage, BadRecord, Kind, Mode

_STRANGE = (
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"[",
    b"]",
    b"}",
    b"null",
    b"-",
    b"1e999",
    b"\\u",
    b"9" * 40,
)


def mutants(samples: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Give so many damaged messages, each of one to four hits."""
    chance = random.Random(seed)
    for _ in range(count):
        message = bytearray(chance.choice(samples))
        for _ in range(chance.randint(1, 4)):
            _hit(message, samples, chance)
        yield bytes(message)


def _hit(message: bytearray, samples: Sequence[bytes], chance: random.Random) -> None:
    start = chance.randrange(len(message) + 1)
    end = min(len(message), start + chance.randint(0, 12))
    match chance.randrange(6):
        case 0 if start < len(message):
            message[start] ^= 1 << chance.randrange(8)
        case 1:
            del message[start:end]
        case 2:
            message[start:start] = message[start:end] * chance.randint(1, 5)
        case 3:
            message[start:end] = chance.choice(_STRANGE)
        case 4:
            other = chance.choice(samples)
            at = chance.randrange(len(other) + 1)
            message[start:end] = other[at : at + chance.randint(0, 20)]
        case _:
            del message[start:]


def read(format_: Format, value: bytes) -> str:
    """Ask all that may be asked of a format about one message: it may only refuse it.

    What became of it: "refused" (at the first look, or when its rows were decoded), or its kind.
    """
    kind, reason = Kind.NOTHING, None
    try:
        kind = format_.peek(value).kind
        list(format_.heads([value]))
        format_.explain(value)
        if kind is Kind.DDL:
            format_.ddl(value)
    except BadMessage as bad:
        reason = str(bad)
    assert reason is None or (reason and "\n" not in reason)
    if kind is not Kind.ROWS:
        return "refused" if reason else kind.value
    ways = ((Mode.UPSERT, None), (Mode.UPSERT, ("id",)), (Mode.APPEND, None))
    places = [bad_place(format_, [value], mode, keys) for mode, keys in ways]
    assert set(places) <= {None, 0}
    return "rows" if None in places else "refused"


def bad_place(
    format_: Format,
    values: Sequence[bytes],
    mode: Mode = Mode.UPSERT,
    keys: tuple[str, ...] | None = ("id",),
) -> int | None:
    """Where a fresh decoder finds the first bad record, None where all are good."""
    try:
        format_.table_decoder(mode, keys).decode(0, range(len(values)), values)
    except BadRecord as bad:
        return bad.index
    return None

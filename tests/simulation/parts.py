"""Messages that a producer cut into parts: how they lie in the log, and the format of both."""

from __future__ import annotations

import random
from collections.abc import Sequence

from changes.formats.canal.json import CanalJson
from changes.model.model import Head, Kind
from offsets.parts import Part

_MARK = b"#"


def cut(rng: random.Random, value: bytes, total: int, stream: str) -> list[bytes]:
    """A message in so many parts, each with a head that tells which it is."""
    cuts = sorted(rng.randrange(1, len(value)) for _ in range(total - 1))
    ends = zip([0, *cuts], [*cuts, len(value)], strict=True)
    heads = (f"#{stream},{total},{number}#".encode() for number in range(total))
    return [head + value[begin:end] for head, (begin, end) in zip(heads, ends, strict=True)]


def uncut(value: bytes) -> tuple[str, Part] | None:
    """The stream and the part that a message is, None for a whole one."""
    if not value.startswith(_MARK):
        return None
    _, head, data = value.split(_MARK, 2)
    stream, total, number = head.decode().split(",")
    return stream, Part(1, int(total), int(number), data)


class SplitCanalJson(CanalJson):
    """Canal JSON, as a producer would write it that cuts messages into parts."""

    def peek(self, value: bytes | None) -> Head:
        if value is not None and value.startswith(_MARK):
            return Head(Kind.PART, None)
        return super().peek(value)

    def part(self, value: bytes) -> tuple[str, Part] | None:
        return uncut(value)

    def comes_in_parts(self, _values: Sequence[bytes | None]) -> bool:
        return True

    def sequence_number(self, _value: bytes) -> tuple[str, int | None]:
        return "", None

    def reassembled(self, _value: bytes, data: bytes) -> bytes:
        return data

"""Reads files of binary messages: one message, or several, each after its length."""

from __future__ import annotations

from collections.abc import Iterator

_LONGEST_PREFIX = 5
"""Bytes of a length below 2^32."""


def binary_messages(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each message with its number, from 1.

    A file holds several messages if its bytes are, to the last one, lengths and messages of these
    lengths. Any other file is one message. A length is a protobuf varint: seven bits a byte, the
    lowest first.
    """
    cut = list(_cut(content))
    if sum(size for size, _ in cut) == len(content):
        return ((number, message) for number, (_, message) in enumerate(cut, 1))
    return iter([(1, content)])


def _cut(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Messages with the bytes that they take, length included, as long as they are whole."""
    at = 0
    while at < len(content):
        length = shift = 0
        for begin in range(at, min(at + _LONGEST_PREFIX, len(content))):
            length |= (content[begin] & 0x7F) << shift
            shift += 7
            if content[begin] < 0x80:
                break
        else:
            return
        end = begin + 1 + length
        if not length or end > len(content):
            return
        yield end - at, content[begin + 1 : end]
        at = end

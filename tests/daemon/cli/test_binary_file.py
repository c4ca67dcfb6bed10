"""Files of binary messages: what is taken for one message and what for several."""

from __future__ import annotations

import pytest

from daemon.cli.message_files import binary_messages


def prefixed(*messages: bytes) -> bytes:
    """Each message behind its length, seven bits a byte."""
    found = bytearray()
    for message in messages:
        length = len(message)
        while length > 0x7F:
            found.append(length & 0x7F | 0x80)
            length >>= 7
        found.append(length)
        found += message
    return bytes(found)


@pytest.mark.parametrize("messages", [(b"a",), (b"ab", b"c"), (b"x" * 300, b"y" * 70_000, b"z")])
def test_several_messages(messages: tuple[bytes, ...]) -> None:
    """Lengths that add up to the file's end are lengths."""
    assert list(binary_messages(prefixed(*messages))) == list(enumerate(messages, 1))


@pytest.mark.parametrize(
    "content", [b"\x00abc", b"\x05abc", b"\x02abc", b"\xff\xff\xff\xff\xff\x01a", b"\x80"]
)
def test_one_message(content: bytes) -> None:
    """What is not lengths and messages to its end is one message, damaged or not."""
    assert list(binary_messages(content)) == [(1, content)]


def test_empty_file() -> None:
    """It holds no message."""
    assert list(binary_messages(b"")) == []

"""Reads messages from the files of ``binlogd decode``: lines, documents over lines, binary ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import msgspec

from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Chunked, Format, pack, unpack
from changes.formats.engine.json_text import with_text_for_bare_numbers
from changes.model.model import BadMessage
from daemon.cli.base.detected_format import FormatUnclear, detected_format
from offsets.parts import MissingPart, PartAssembler, TooLarge
from offsets.position import TopicPartition

# Reads files of binary messages: one message, or several, each after its length.

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


_LONGEST_DOCUMENT = 64 * 1024 * 1024
"""Bytes of one message that spans lines. Kafka's own limit is far below."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors put before a text."""

_NOT_TEXT = {
    b"\x1f\x8b": "is compressed by gzip; unpack it first, such as zcat FILE | binlogd decode -",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; unpack it first, such as zstdcat FILE | …",
    b"\xff\xfe": "is UTF-16 text; UTF-8 is required, such as iconv -f UTF-16 -t UTF-8 FILE | …",
    b"\xfe\xff": "is UTF-16 text; UTF-8 is required, such as iconv -f UTF-16 -t UTF-8 FILE | …",
}
"""First bytes of files that are no messages at all, and what to do with such a file."""


class NotText(Exception):
    """The file can't hold messages: one line."""


_whole = msgspec.json.Decoder(msgspec.Raw)


def detect_format(file: BinaryIO, auto: AutoFormat) -> tuple[Format | None, Iterable[bytes]]:
    """Detect a file's format from its first messages. Returns it with all the file's lines.

    None: the file holds no message. Raises NotText.
    """
    taken: list[bytes] = []
    rest = iter(file)
    first = next(rest, b"")
    taken.append(first)

    def lines() -> Iterator[bytes]:
        yield first
        for line in rest:
            taken.append(line)
            yield line

    if _is_binary(first):
        content = b"".join(lines())
        records = [pack(None, each) for _, each in binary_messages(content)]
        found = (unpack(each) for each in (*records, pack(None, content)))
    else:
        found = (unpack(keyed_record(text)) for _, text in messages(_text(lines())))
    try:
        return detected_format(auto, found), itertools.chain(taken, rest)
    except FormatUnclear as unclear:
        raise NotText(str(unclear)) from unclear


def _is_binary(line: bytes) -> bool:
    """Whether a file's first line shows that it holds binary messages."""
    if line.startswith(tuple(_NOT_TEXT)):
        return False
    return any(byte < 0x20 and byte not in b"\t\r\n\f" for byte in line)


def values_of(lines: Iterable[bytes], format_: Format) -> Iterator[tuple[int, bytes]]:
    """The values for the format, each with its place in the file. Raises NotText."""
    if format_.binary:
        content = b"".join(lines)
        found = list(binary_messages(content))
        if format_.keyed:
            content = pack(None, content)
            found = [(place, pack(None, each)) for place, each in found]
        if not _all_good(format_, [each for _, each in found]) and _all_good(format_, [content]):
            # One message whose first bytes happen to be lengths that lead to its end.
            found = [(1, content)]
        yield from _whole_ones(format_, found)
        return
    for place, line in messages(_text(lines)):
        yield place, keyed_record(line) if format_.keyed else line


def _all_good(format_: Format, values: Sequence[bytes]) -> bool:
    try:
        for value in values:
            format_.peek(value)
    except BadMessage:
        return False
    return True


_FILE = TopicPartition("", 0)


def _whole_ones(
    format_: Format, values: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Chunked messages, reassembled where all parts follow each other.

    A part without the others is returned as it is: the format reports what is missing.
    """
    parts = PartAssembler(_LONGEST_DOCUMENT)
    parts.begin(_FILE, at_frontier=False)
    open_: list[tuple[int, bytes]] = []
    for place, value in values:
        try:
            found = format_.part(value) if isinstance(format_, Chunked) else None
            whole = None if found is None else parts.take(_FILE, found[0], place, found[1])
        except (BadMessage, MissingPart, TooLarge):
            yield from (*open_, (place, value))
            open_ = []
            parts.begin(_FILE, at_frontier=False)
            continue
        if found is None:
            yield place, value
        elif whole is None:
            open_.append((place, value))
        else:
            assert isinstance(format_, Chunked)
            open_ = []
            yield place, format_.reassembled(value, whole.data)
    yield from open_


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    key: msgspec.Raw
    value: msgspec.Raw
    headers: dict[str, str | None] = {}


_record = msgspec.json.Decoder(_Record)


def keyed_record(line: bytes) -> bytes:
    """Pack a record for a format that needs keys (``Format.keyed``).

    A line with ``key`` and ``value``, perhaps ``headers``, and nothing else is a whole record if
    its value is an object, null, or a text that holds one. Any other line is a value.
    """
    try:
        record = _record.decode(with_text_for_bare_numbers(line))
        key, value = _part(record.key), _part(record.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return pack(None, line)
    if value is not None and not value.startswith(b"{"):
        return pack(None, line)
    headers = [(n, None if v is None else v.encode()) for n, v in record.headers.items()]
    return pack(key, value, headers)


def _part(raw: msgspec.Raw) -> bytes | None:
    """A key or value: JSON unchanged, or as a text. None for null."""
    text = bytes(raw)
    if text == b"null":
        return None
    return msgspec.json.decode(text, type=str).encode() if text.startswith(b'"') else text


def _text(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, unless the first one shows that the file is not text. Raises NotText."""
    rest = iter(lines)
    for line in rest:
        for beginning, problem in _NOT_TEXT.items():
            if line.startswith(beginning):
                raise NotText(problem)
        yield line
        break
    yield from rest


def messages(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each message with the number of its first line, from 1.

    A message is a line, or a document over several lines. What begins like a document but does not
    become one is returned line by line, so that each is reported as bad.
    """
    pending: list[tuple[int, bytes]] = []
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not pending and not line.strip():
            continue
        pending.append((number, line))
        # Only a line that begins in the first column ends an indented document.
        if len(pending) > 1 and line[:1].isspace() and _small(pending):
            continue
        yield from _take(pending)
    if pending:
        yield from _take(pending)
    yield from _one_by_one(pending)


def _small(pending: Sequence[tuple[int, bytes]]) -> bool:
    return sum(len(line) for _, line in pending) < _LONGEST_DOCUMENT


def _take(pending: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield and clear ``pending`` unless it is the beginning of a document."""
    text = b"".join(line for _, line in pending)
    try:
        _whole.decode(text)
    except msgspec.DecodeError as error:
        if "truncated" in str(error) and _small(pending):
            return
        yield from _one_by_one(pending)
    except RecursionError:  # too deep to be parsed; the format reports it, too
        yield from _one_by_one(pending)
    else:
        yield pending[0][0], text
    pending.clear()


def _one_by_one(pending: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in pending if line.strip())

"""``binlogd decode``: prints messages as one line of JSON for each change. Needs no broker."""

from __future__ import annotations

import base64
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from changes.decoding.bare_numbers import with_text_for_bare_numbers
from changes.formats.auto import AutoFormat, detector
from changes.formats.base import Chunked, Format, RowChange, Statement, pack, unpack
from changes.model import BadMessage
from daemon.commands.detected_format import FormatUnclear, detected_format
from daemon.spills.binary_file import binary_messages
from offsets.parts import MissingPart, PartAssembler, TooLarge
from offsets.position import TopicPartition

STDIN = "-"

_LONGEST_DOCUMENT = 64 * 1024 * 1024
"""Bytes of one message that spans lines. Kafka's own limit is far below."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors put before a text."""

_READER_GONE = 128 + 13
"""The exit status of a program that SIGPIPE ended."""

_NOT_TEXT = {
    b"\x1f\x8b": "is compressed by gzip; unpack it first, such as zcat FILE | binlogd decode -",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; unpack it first, such as zstdcat FILE | …",
    b"\xff\xfe": "is UTF-16 text; UTF-8 is wanted, such as iconv -f UTF-16 -t UTF-8 FILE | …",
    b"\xfe\xff": "is UTF-16 text; UTF-8 is wanted, such as iconv -f UTF-16 -t UTF-8 FILE | …",
}
"""First bytes of files that are no messages at all, and what to do with such a file."""


class NotText(Exception):
    """The file can't hold messages: one line."""


class OutputFailed(Exception):
    """The output can't be written: one line. Not the input's fault, so nothing goes on."""


_whole = msgspec.json.Decoder(msgspec.Raw)


def run_decode(files: Sequence[str], format_: Format) -> int:
    """Decode to standard output, report bad input on standard error. Returns the exit status.

    A reader that closes the pipe (``| head``) ends it quietly.
    """
    if sys.stdout is None:
        print("binlogd: the standard output is closed", file=sys.stderr)
        return 1
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    try:
        with out:
            good = decode_files(files, format_, out, sys.stderr)
    except BrokenPipeError:
        return _READER_GONE
    except (OutputFailed, OSError) as error:  # OSError: the last part, when it is closed
        reason = error.strerror if isinstance(error, OSError) else error
        print(f"binlogd: the standard output can't be written: {reason}", file=sys.stderr)
        return 1
    return 0 if good else 1


def decode_files(files: Sequence[str], format_: Format, out: TextIO, errors: TextIO) -> bool:
    """Decode the files one after another; ``-`` is standard input. Returns whether all was good.

    Bad input is reported on ``errors`` with file and line, and the rest is decoded. Raises
    OutputFailed, BrokenPipeError.
    """
    good = True
    for name in files:
        shown = "<stdin>" if name == STDIN else name
        try:
            if name == STDIN and sys.stdin is None:
                raise NotText("is closed")
            if name == STDIN:
                good &= _decode_file(sys.stdin.buffer, shown, format_, out, errors)
            else:
                with Path(name).open("rb") as file:
                    good &= _decode_file(file, shown, format_, out, errors)
        except BrokenPipeError:
            raise
        except OSError as error:
            good = False
            print(f"{shown}: {error.strerror or error}", file=errors)
        except NotText as error:
            good = False
            print(f"{shown}: {error}", file=errors)
    return good


def _decode_file(file: BinaryIO, shown: str, format_: Format, out: TextIO, errors: TextIO) -> bool:
    good = True
    lines: Iterable[bytes] = file
    if (auto := detector(format_)) is not None:
        detected, lines = _detected(file, auto)
        if detected is None:
            return True
        format_ = detected
        print(f"{shown}: read as {format_.name}", file=errors)
    for place, value in _values(lines, format_):
        try:
            changes = format_.explain(value)
        except BadMessage as bad:
            good = False
            print(f"{shown}:{place}: {bad}", file=errors)
            continue
        for change in changes:
            _write(as_line(change), out)
            if isinstance(change, RowChange) and change.misfit is not None:
                good = False
                print(f"{shown}:{place}: {change.table}: {change.misfit}", file=errors)
    return good


def _detected(file: BinaryIO, auto: AutoFormat) -> tuple[Format | None, Iterable[bytes]]:
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


def _values(lines: Iterable[bytes], format_: Format) -> Iterator[tuple[int, bytes]]:
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


def _write(line: str, out: TextIO) -> None:
    """Raises OutputFailed: a full disk must not be reported as a fault of the input."""
    try:
        print(line, file=out)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(error.strerror or str(error)) from error


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
    """Return and clear ``pending`` unless it is the beginning of a document."""
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


def as_line(change: RowChange | Statement) -> str:
    """A change as one line of JSON."""
    table = str(change.table)
    members: dict[str, object]
    if isinstance(change, Statement):
        members = {"table": table, "op": "DDL", "sql": change.sql, "ts_ms": change.ts_ms}
    else:
        members = {
            "table": table,
            "op": change.op,
            "key": _image(change.key),
            "before": _image(change.before),
            "after": _image(change.after),
            "ts_ms": change.ts_ms,
        }
    return json.dumps(members, ensure_ascii=False, allow_nan=False)


def _image(image: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if image is None else {name: _plain(value) for name, value in image.items()}


def _plain(value: object) -> object:
    """Decimals, NaN and infinities as text, bytes in base64, times in ISO 8601. JSON has the
    rest."""
    match value:
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value

"""``binlogd decode``: prints messages as one line of JSON for each change. Needs no broker."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from changes.formats.auto import detector
from changes.formats.base import Format, RowChange
from changes.model import BadMessage
from daemon.commands.change_json import as_line
from daemon.commands.message_files import NotText, detect_format, values_of

STDIN = "-"


def run_decode(files: Sequence[str], format_: Format) -> int:
    """Decode to standard output, report bad input on standard error. Returns the exit status."""
    # JSON is UTF-8, whatever the locale.
    cast(Any, sys.stdout).reconfigure(encoding="utf-8", errors="strict")
    sys.stdout.write("")  # where it is closed, nothing is read
    return 0 if decode_files(files, format_, sys.stdout, sys.stderr) else 1


def decode_files(files: Sequence[str], format_: Format, out: TextIO, errors: TextIO) -> bool:
    """Decode the files one after another; ``-`` is standard input. Returns whether all was good.

    Bad input is reported on ``errors`` with file and line, and the rest is decoded. Raises
    OutputFailed.
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
        detected, lines = detect_format(file, auto)
        if detected is None:
            return True
        format_ = detected
        print(f"{shown}: read as {format_.name}", file=errors)
    for place, value in values_of(lines, format_):
        try:
            changes = format_.explain(value)
        except BadMessage as bad:
            good = False
            print(f"{shown}:{place}: {bad}", file=errors)
            continue
        for change in changes:
            print(as_line(change), file=out)
            if isinstance(change, RowChange) and change.misfit is not None:
                good = False
                print(f"{shown}:{place}: {change.table}: {change.misfit}", file=errors)
    return good

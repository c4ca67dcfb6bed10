"""Texts as properties of a namespace, in parts where a catalog's columns are too short. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

from changes.model.errors import SinkUnavailable

LONGEST_NOTE = 900
"""Characters of one property's value. On PostgreSQL a JDBC catalog's column takes 1,000."""

_HEAD = re.compile(r"(\d+):(\d+)\|")


def notes(name: str, text: str) -> dict[str, str]:
    """A text as properties, in parts where it is long: the first one begins with their number and
    the text's checksum, since a catalog may change properties one after the other."""
    if len(text) <= LONGEST_NOTE:
        return {name: text}
    parts = [text[at : at + LONGEST_NOTE] for at in range(0, len(text), LONGEST_NOTE)]
    rest = {f"{name}#{number}": part for number, part in enumerate(parts[1:], start=1)}
    return {name: f"{len(parts)}:{_checksum(text)}|{parts[0]}", **rest}


def noted(name: str, get: Callable[[str], object]) -> str | None:
    """What ``notes`` made of a text, None where there is none.

    Raises SinkUnavailable where its parts are of two texts: its writer was interrupted, and
    writes it again.
    """
    first = get(name)
    if first is None:
        return None
    head = _HEAD.match(str(first))
    if head is None:
        return str(first)
    rest = "".join(str(get(f"{name}#{number}")) for number in range(1, int(head[1])))
    text = str(first)[head.end() :] + rest
    if _checksum(text) != int(head[2]):
        raise SinkUnavailable(f"the namespace's property {name} was written in part")
    return text


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))

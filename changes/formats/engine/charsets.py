"""MySQL's character sets, by their names there."""

from __future__ import annotations

import codecs
import functools

from changes.formats.engine.layout import Refused

_CODECS = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "tis620": "tis_620",
    "hp8": "hp_roman8",
    "macce": "mac_latin2",
}
"""Python's names of MySQL's character sets, where they differ."""


def decode_text(raw: bytes, charset: str) -> str:
    """Decode bytes as text of a character set; raises Refused. An empty name means UTF-8."""
    charset = charset.lower()
    try:
        return raw.decode(_codec(charset))
    except UnicodeDecodeError as error:
        if charset == "latin1":
            return _latin1(raw)
        raise Refused(f"{raw[:30]!r} is not text in {charset or 'utf8'}") from error


@functools.lru_cache(maxsize=256)
def _codec(charset: str) -> str:
    if charset == "latin1":
        return "cp1252"
    try:
        return codecs.lookup(_CODECS.get(charset, charset or "utf-8")).name
    except (LookupError, ValueError) as error:
        raise Refused(f"the character set {charset!r} is not known") from error


def _latin1(raw: bytes) -> str:
    """MySQL's latin1 is Windows' 1252 with the five bytes that this leaves out as themselves."""
    return "".join(
        chr(byte) if byte in b"\x81\x8d\x8f\x90\x9d" else bytes((byte,)).decode("cp1252")
        for byte in raw
    )

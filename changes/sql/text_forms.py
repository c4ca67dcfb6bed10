"""Normalizes the texts of types that the lake stores as text: one form each, labels by name."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from changes.model.digits import is_digits
from changes.model.types import (
    SourceType,
    TextForm,
)

_TIME = re.compile(r"(-?)0*([0-9]{1,3}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6})0*)?", re.ASCII)

_MOST_HOURS = 838
"""MySQL's TIME ends here, either way."""

_MASK_DIGITS = 20
"""Digits of the largest mask, 2^64 - 1."""

_FORMS: Mapping[TextForm, Callable[[str], object]] = {
    TextForm.UUID: uuid.UUID,
    TextForm.INET4: ipaddress.IPv4Address,
    TextForm.INET6: ipaddress.IPv6Address,
}
"""Parsers that refuse an invalid text."""


def reader_of(kind: SourceType) -> Callable[[str], str] | None:
    """The function that normalizes one text of a type; None where texts stay as they are.

    It raises pa.ArrowInvalid.
    """
    match kind.form:
        case TextForm.UTF8:
            return utf8_text
        case TextForm.TIME:
            return time_text
        case TextForm.ENUM:
            return partial(enum_label, labels=kind.labels)
        case TextForm.SET:
            return partial(set_labels, labels=kind.labels)
        case TextForm.UUID | TextForm.INET4 | TextForm.INET6:
            return partial(formed_text, _FORMS[kind.form])
        case _:
            return None


def time_text(text: str) -> str:
    """Normalize a TIME: ``-101:02:03``, with six digits of a second where it has any.

    Raises pa.ArrowInvalid.
    """
    found = _TIME.fullmatch(text)
    if found is None or int(found[2]) > _MOST_HOURS:
        raise pa.ArrowInvalid("not a time")
    part = (found[5] or "").ljust(6, "0")
    shown = f"{int(found[2]):02}:{found[3]}:{found[4]}" + (f".{part}" if int(part) else "")
    return found[1] + shown if any(digit in shown for digit in "123456789") else shown


def enum_label(text: str, labels: Sequence[str]) -> str:
    """Find the label by its number; text that is a label already stays, as other tools write it.

    Raises pa.ArrowInvalid.
    """
    if is_digits(text) and len(text) <= _MASK_DIGITS:
        number = int(text)
        if number <= len(labels):
            return labels[number - 1] if number else ""
    elif not labels:
        return text
    if text in labels or not text:
        return text
    raise pa.ArrowInvalid("not a label")


def set_labels(text: str, labels: Sequence[str]) -> str:
    """Find the labels by their mask, joined by commas, in the order of the definition.

    Text that is labels already stays. Raises pa.ArrowInvalid.
    """
    if is_digits(text) and len(text) <= _MASK_DIGITS:
        mask = int(text)
        if mask < 1 << len(labels):
            return ",".join(label for place, label in enumerate(labels) if mask >> place & 1)
    elif not labels:
        return text
    if not text or all(label in labels for label in text.split(",")):
        return text
    raise pa.ArrowInvalid("not a set of labels")


def utf8_text(value: str) -> str:
    """Decode a text that came byte by byte. Raises pa.ArrowInvalid."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError as error:
        raise pa.ArrowInvalid("no UTF-8, byte by byte") from error


def formed_text(form: Callable[[str], object], value: str) -> str:
    """Return the text where ``form`` accepts it. Raises pa.ArrowInvalid."""
    try:
        form(value)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    return value


SHAPE = re.compile(
    r"\s*([a-z_][a-z0-9_]*)\s*(?:\(([^()]*)\))?(.*)", re.DOTALL | re.IGNORECASE | re.ASCII
)
DECIMALS = frozenset(("decimal", "numeric", "dec", "fixed"))


def lacks_digits(text: str) -> bool:
    """Whether a type is a decimal without digits. MySQL itself always prints them, (10,0) too;
    some writers leave parameters out."""
    shape = SHAPE.match(text)
    return shape is not None and shape[1].lower() in DECIMALS and shape[2] is None

"""Detects the format of a record, for ``format = "auto"``.

Each format says how sure it is that a record is its own (``Format.recognise``). The surest one is
believed where it is alone and at least likely; otherwise the next record may decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from changes.formats import FORMATS
from changes.formats.engine.format import Confidence, Packed
from changes.formats.engine.heads import foreign
from changes.formats.engine.json_text import members
from changes.formats.engine.layout import Refused
from changes.formats.wire.frames import frame_of
from changes.model.registry import Registry
from settings.counted import counted


def confidences(record: Packed) -> dict[str, Confidence]:
    """By format its confidence that a record is its own, without those that rule it out."""
    found = {name: kind.recognise(record) for name, kind in FORMATS.items()}
    return {name: sign for name, sign in found.items() if sign is not Confidence.NO}


def recognised(found: Mapping[str, Confidence]) -> str | None:
    """The format of a record by ``confidences``: the surest one, if it is likely.

    None where none is, or two are equally sure.
    """
    best = max(found.values(), default=Confidence.NO)
    if best < Confidence.LIKELY:
        return None
    names = [name for name, sign in found.items() if sign is best]
    return names[0] if len(names) == 1 else None


def not_read(record: Packed) -> str | None:
    """The writer of a record, where it is certainly one that binlogd does not read."""
    return foreign(members(record.value))


def why_not_read(record: Packed, registry: Registry | None) -> str | None:
    """Why nothing can come of a record that no format takes for its own, as the rest of a sentence
    about its topic or file; None where another record may tell more."""
    if (whose := not_read(record)) is not None:
        return f"holds {whose}, which is not read"
    try:
        for data, is_key in ((record.value, False), (record.key, True)):
            if data is not None:
                frame_of(data, record.headers, registry, is_key=is_key)
    except Refused as refused:
        return f"holds a record that can't be read: {refused}"
    return None


def shape_of(record: Packed) -> str:
    """Describe a record for an error: names of members and sizes, no values."""
    value = record.value
    if value is None:
        return "no value"
    if not value.strip():
        return "an empty value"
    found = members(value)
    if found:
        names = ", ".join(sorted(found)[:_NAMES_SHOWN])
        return f"an object of {names}{', …' if len(found) > _NAMES_SHOWN else ''}"
    begun = counted(len(value), "byte that begins", "bytes that begin")
    return f"{begun} with {value[:_BYTES_SHOWN].hex(' ')}"


def unclear(records: Iterable[Packed]) -> str:
    """Describe records whose format is unclear, and the formats they may be of."""
    shapes: Counter[str] = Counter()
    may: Counter[str] = Counter()
    for record in records:
        shapes[shape_of(record)] += 1
        may.update(confidences(record).keys())
    seen = "; ".join(f"{shape} ({count})" for shape, count in shapes.most_common(_SHAPES_SHOWN))
    more = (
        f"; and {counted(len(shapes) - _SHAPES_SHOWN, 'other')}"
        if len(shapes) > _SHAPES_SHOWN
        else ""
    )
    names = ", ".join(f"{name} ({count})" for name, count in may.most_common())
    return f"{seen}{more}; it may be of {names or 'none that is known'}"


_SHAPES_SHOWN = 3
_NAMES_SHOWN = 8
_BYTES_SHOWN = 8

"""Tells the format of records of which nothing is known (``format = "auto"``), by one rule.

Each format says of a record how sure it is that it is its own (``Format.recognise``); the surest
is believed, where it is one alone and at least likely. Otherwise the next record may tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from changes.decoding.glance import members
from changes.formats import FORMATS
from changes.formats.base import Confidence, Packed
from changes.formats.foreign import foreign


def confidences(record: Packed) -> dict[str, Confidence]:
    """What each format says of a record, of those that don't rule it out."""
    told = {name: kind.recognise(record) for name, kind in FORMATS.items()}
    return {name: sign for name, sign in told.items() if sign is not Confidence.NO}


def recognised(told: Mapping[str, Confidence]) -> str | None:
    """The format of a record by what all say of it: the one that is surest, if it is likely.

    None where none is, or two are equally sure.
    """
    best = max(told.values(), default=Confidence.NO)
    if best < Confidence.LIKELY:
        return None
    names = [name for name, sign in told.items() if sign is best]
    return names[0] if len(names) == 1 else None


def not_read(record: Packed) -> str | None:
    """Whose record it is where it is for sure one of a writer that is not read."""
    return foreign(members(record.value))


def shape_of(record: Packed) -> str:
    """What a record looks like, for an error: names of members and sizes, no values."""
    value = record.value
    if value is None:
        return "no value"
    if not value.strip():
        return "an empty value"
    found = members(value)
    if found:
        names = ", ".join(sorted(found)[:_NAMES_SHOWN])
        return f"an object of {names}{', …' if len(found) > _NAMES_SHOWN else ''}"
    return f"{len(value)} bytes that begin with {value[:_BYTES_SHOWN].hex(' ')}"


def unclear(records: Iterable[Packed]) -> str:
    """What came of which no format can be told, and which formats it may be of."""
    shapes: Counter[str] = Counter()
    may: Counter[str] = Counter()
    for record in records:
        shapes[shape_of(record)] += 1
        may.update(confidences(record).keys())
    seen = "; ".join(f"{shape} ({count})" for shape, count in shapes.most_common(_SHAPES_SHOWN))
    more = f"; and {len(shapes) - _SHAPES_SHOWN} others" if len(shapes) > _SHAPES_SHOWN else ""
    names = ", ".join(f"{name} ({count})" for name, count in may.most_common())
    return f"{seen}{more}; it may be of {names or 'none that is known'}"


_SHAPES_SHOWN = 3
_NAMES_SHOWN = 8
_BYTES_SHOWN = 8


class TopicFormats:
    """The formats of a pipeline's topics, as far as they were told. None ever changes.

    Written by the fetcher's thread, before anything of the topic goes to anybody; read by any.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})

    def of(self, topic: str) -> str | None:
        """The topic's format, None where it was not told yet."""
        return self._known.get(topic)

    def choose(self, topic: str, name: str) -> None:
        """Note a topic's format."""
        if self._known.setdefault(topic, name) != name:
            raise ValueError(f"the format of {topic} is {self._known[topic]} already, not {name}")

    @property
    def known(self) -> Mapping[str, str]:
        """All of them."""
        return dict(self._known)

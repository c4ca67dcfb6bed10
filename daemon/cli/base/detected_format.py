"""Detects a file's format from its first records, as a pipeline does for a topic."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Format, Packed
from changes.formats.recognise import recognised, unclear, why_not_read

FIRST = 1000
"""How many records are examined. If a file's first thousand show nothing, the others won't."""


class FormatUnclear(Exception):
    """A file's format can't be detected, or can't be read with the options: one line."""


def detected_format(auto: AutoFormat, records: Iterable[Packed]) -> Format | None:
    """The format of the first record that shows it, with the options of ``auto``.

    None without any record. Raises FormatUnclear.
    """
    seen: list[Packed] = []
    for record in islice(records, FIRST):
        name = recognised(auto.confidences(record))
        if name is not None:
            try:
                return auto.named(name)
            except ValueError as error:
                raise FormatUnclear(f"is of format {name}: {error}") from error
        if (unread := why_not_read(record, auto.registry)) is not None:
            raise FormatUnclear(unread)
        seen.append(record)
    if not seen:
        return None
    raise FormatUnclear(f"its format can't be detected: {unclear(seen)}. --format names one")

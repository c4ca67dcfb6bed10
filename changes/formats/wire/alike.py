"""Translates the records of a batch that are in Avro of one schema together (``avro_blocks``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from changes.formats.engine.format import VALUE_AT, pack, sizes
from changes.formats.wire.avro import AvroTranslation

_FRAME = 5
"""Bytes of a frame with an id of four bytes."""
LEAST, _MOST = 500, 8192
"""Records that are read together. Fewer: one by one is as quick. More: only more memory."""
_MOST_BYTES = 16 << 20
"""Of records that are read together: what is made of them has several times as many."""

Begins = tuple[bytes, bytes]
"""The frames before a value and its key."""


def together(
    values: Sequence[bytes], known: Mapping[bytes, object], learn: Callable[[bytes], None]
) -> dict[int, bytes]:
    """By place those packed records that could be translated together.

    ``known``: by its frame what translates a payload; ``learn`` adds what a record needs. Raises
    nothing: records that are left out are to be read one by one.
    """
    ready: dict[int, bytes] = {}
    for begins, places in _alike(values).items():
        first, _ = places[0]
        if not known.keys() >= set(begins):
            learn(values[first])
        of_value, of_key = map(known.get, begins)
        if not (isinstance(of_value, AvroTranslation) and isinstance(of_key, AvroTranslation)):
            continue
        step = min(_MOST, _MOST_BYTES // max(end for _, end in places))
        for at in range(0, len(places), step or len(places)):
            some = places[at : at + step]
            if len(some) >= LEAST:
                texts = of_value.wrapped_all([values[p][VALUE_AT:end] for p, end in some], _FRAME)
                keys = of_key.wrapped_all([values[p][end:] for p, end in some], _FRAME)
                if texts is not None and keys is not None:
                    ready.update(zip([p for p, _ in some], map(pack, keys, texts), strict=True))
    return ready


def _alike(values: Sequence[bytes]) -> Mapping[Begins, Sequence[tuple[int, int]]]:
    """The records with value and key and without headers, by their frames, where there are enough:
    of each its place and where its value ends."""
    found: defaultdict[Begins, list[tuple[int, int]]] = defaultdict(list)
    if len(values) < LEAST:
        return found
    for place, packed in enumerate(values):
        size, key_size, headers_size = sizes(packed)
        if size > 0 and key_size > 0 and not headers_size:
            end = VALUE_AT + size
            begins = packed[VALUE_AT : VALUE_AT + _FRAME], packed[end : end + _FRAME]
            found[begins].append((place, end))
    return {begins: places for begins, places in found.items() if len(places) >= LEAST}

"""The partition that a producer chooses for a record by its key: Kafka's partitioners.

Many keys at once, by Arrow's kernels: a loop over the bytes of each key would cost more than the
decoding of its record.
"""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from struct import iter_unpack

import pyarrow as pa
import pyarrow.compute as pc

_SEED = 0x9747B28C
_M = pa.scalar(0x5BD1E995, pa.uint32())
_WORD = 0xFFFFFFFF
_POSITIVE = pa.scalar(0x7FFFFFFF, pa.uint32())


def _murmur2(keys: Sequence[bytes]) -> pa.Array:
    """As Kafka's Java client has it, its sign taken off. Keys of one length are hashed together."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, size in enumerate(map(len, keys)):
        places[size].append(place)
    if len(places) == 1:
        return _murmur2_of(keys, len(keys[0]))
    hashes = [_murmur2_of([keys[at] for at in mine], size) for size, mine in places.items()]
    order = array("q", [at for mine in places.values() for at in mine])
    return pa.concat_arrays(hashes).take(pc.sort_indices(pa.array(order)))


def _murmur2_of(keys: Sequence[bytes], size: int) -> pa.Array:
    words, tail = divmod(size, 4)
    same, state = _beginning(keys, size)
    left, whole = words - same, words - same + bool(tail)
    found = pa.repeat(pa.scalar(state, pa.uint32()), len(keys))
    if whole:
        ends = [key[4 * same :] for key in keys] if same else keys
        joined = b"".join([k.ljust(4 * whole, b"\0") for k in ends] if tail else ends)
        flat = pa.Array.from_buffers(pa.uint32(), whole * len(keys), [None, pa.py_buffer(joined)])
        rows = pa.FixedSizeListArray.from_arrays(flat, whole)
    for at in range(left):
        word = pc.multiply(pc.list_element(rows, at), _M)
        word = pc.multiply(pc.bit_wise_xor(word, _shifted(word, 24)), _M)
        found = pc.bit_wise_xor(pc.multiply(found, _M), word)
    if tail:
        found = pc.multiply(pc.bit_wise_xor(found, pc.list_element(rows, left)), _M)
    found = pc.multiply(pc.bit_wise_xor(found, _shifted(found, 13)), _M)
    return pc.bit_wise_and(pc.bit_wise_xor(found, _shifted(found, 15)), _POSITIVE)


def _beginning(keys: Sequence[bytes], size: int) -> tuple[int, int]:
    """The words with which all these keys begin, and the hash behind them: keys with a schema
    differ in their last bytes alone. Of many, the least and the greatest tell it."""
    ends = zip(min(keys), max(keys), strict=True)
    same = next((at for at, (one, other) in enumerate(ends) if one != other), size) // 4
    factor, state = _M.as_py(), _SEED ^ size
    for (word,) in iter_unpack("<I", keys[0][: 4 * same]):
        mixed = word * factor & _WORD
        mixed = (mixed ^ mixed >> 24) * factor & _WORD
        state = (state * factor & _WORD) ^ mixed
    return same, state


def _shifted(numbers: pa.Array, bits: int) -> pa.Array:
    return pc.shift_right(numbers, pa.scalar(bits, pa.uint32()))


def _crc32(keys: Sequence[bytes]) -> pa.Array:
    return pa.array(array("I", map(zlib.crc32, keys)))


PARTITIONERS: dict[str, Callable[[Sequence[bytes]], pa.Array]] = {
    "murmur2": _murmur2,
    "murmur2_random": _murmur2,
    "crc32": _crc32,
    "consistent_random": _crc32,
}
"""By name, the hashes of keys. ``murmur2`` is the default of Java's producers, so of Kafka Connect
and Debezium; ``consistent_random`` that of librdkafka's. The ``random`` ones differ in records
without a key alone."""


def first_elsewhere(
    partitioner: str, keys: Sequence[bytes], partitions: int, partition: int
) -> tuple[int, int] | None:
    """The place of the first key that belongs into another partition, and which one that is."""
    if not keys:
        return None
    hashes = PARTITIONERS[partitioner](keys)
    count = pa.scalar(partitions, pa.uint32())
    belongs = pc.subtract(hashes, pc.multiply(pc.divide(hashes, count), count))
    place = pc.index(pc.equal(belongs, pa.scalar(partition, pa.uint32())), False).as_py()
    return None if place < 0 else (place, belongs[place].as_py())

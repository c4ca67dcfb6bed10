"""Partitions as the producers' clients choose them."""

from __future__ import annotations

import random

import pytest

from changes.model.partitioners import PARTITIONERS, first_elsewhere
from tests.simulation.keyed.stream import partition_of

# The hashes of Kafka's own tests (UtilsTest.testMurmur2), and crc32's check value.
KNOWN = {
    "murmur2": {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536},
    "crc32": {b"123456789": 0xCBF43926},
}


@pytest.mark.parametrize(
    ("name", "of"), [("murmur2", "murmur2"), ("murmur2_random", "murmur2"), ("crc32", "crc32"),
                     ("consistent_random", "crc32")]
)  # fmt: skip
def test_hashes_are_those_of_the_clients(name: str, of: str) -> None:
    """Keys of several lengths at once, in their order."""
    mask = 0x7FFFFFFF if of == "murmur2" else 0xFFFFFFFF
    keys = list(KNOWN[of])
    assert PARTITIONERS[name](keys).to_pylist() == [KNOWN[of][key] & mask for key in keys]


def test_many_keys_at_once_are_hashed_as_one_by_one() -> None:
    """Of all lengths, the empty one among them; with a beginning that all have, and equal ones."""
    rng = random.Random(1)
    for _ in range(300):
        begin, most = rng.randbytes(rng.choice((0, 0, 3, 8, 21))), rng.choice((1, 3, 14))
        keys = [begin + rng.randbytes(rng.randrange(most)) for _ in range(rng.randrange(1, 40))]
        count = rng.randrange(1, 9)
        places = [partition_of(key, count) for key in keys]
        elsewhere = [(at, p) for at, p in enumerate(places) if p != places[0]]
        found = first_elsewhere("murmur2", keys, count, places[0])
        assert found == (elsewhere[0] if elsewhere else None)


def test_no_key_is_nowhere_else() -> None:
    assert first_elsewhere("murmur2", [], 6, 0) is None

"""The keys that the Parallel Consumer gets."""

from __future__ import annotations

from bench.peers.parallel_consumer import by_table


def test_a_message_gets_its_table_as_its_key() -> None:
    """The message stays as it is."""
    value = b'{"data":[{"id":"1"}],"database":"bench","table":"t7","type":"INSERT"}'
    assert list(by_table(value)) == [(b"t7", value)]

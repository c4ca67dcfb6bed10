"""GoldenGate's messages over several rows: what a case alone can't say."""

from __future__ import annotations

from changes.model.model import OP
from changes.routes.fold import fold
from tests.changes.formats.json_messages import decode, ogg


def test_partial_key_change_in_one_batch() -> None:
    """What a changed key's row lacks is what the old key's row had."""
    values = [
        ogg("I", {"id": 1, "a": 1, "b": 2}),
        ogg("U", {"id": 2, "a": 5}, {"id": 1, "a": 1}),
    ]
    changes = decode("ogg-json", *values)
    found = {row["id"]: row for row in fold(changes.table, changes.schema.keys).to_pylist()}
    assert (found["2"]["a"], found["2"]["b"]) == ("5", "2")
    assert found["1"][OP] == "D"

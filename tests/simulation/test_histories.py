"""Histories under the seeded scheduler: each change ends one version, once."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from changes.shaping.shape import Shape as RouteShape
from tests.simulation.lives import live_through
from tests.simulation.shape import random_shape
from tests.simulation.source import target_of
from tests.simulation.staging import RealStaging
from tests.simulation.stream import Stream, random_stream

HISTORY = RouteShape(history=True)


def ended_by(stream: Stream) -> dict[str, Counter[str]]:
    """Of each target, how many versions the message at each place ended."""
    found: dict[str, Counter[str]] = {}
    bad = {(source, offset) for source, offset, _ in stream.letters}
    for source, log in stream.messages.items():
        for offset, value in log:
            if (source, offset) in bad:
                continue
            said: dict[str, Any] = msgspec.json.decode(value)
            rows = len(said["data"]) if said["type"] in ("UPDATE", "DELETE") else 0
            places = found.setdefault(target_of(said["table"]), Counter())
            places[f"{source.partition}:{offset}"] += rows
    return found


@pytest.mark.parametrize("seed", range(30))
def test_each_change_ends_one_version(seed: int) -> None:
    """Through crashes, lost replies, rebalances, quarantines; the present ones are the oracle's."""
    rng = random.Random(seed)
    drawn = random_shape(rng)
    shape = replace(drawn, ddl=0.0, several=0.0, lanes=False, route=HISTORY)
    stream = random_stream(rng, 60, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3)), "refusals": 1}
    durable = live_through(
        stream, rng, rng.randrange(4), rng.choice((0, 4)), faults, staging=RealStaging
    )
    ends = ended_by(stream)
    for name, rows in stream.tables.items():
        table = durable.sink.tables.get(name)
        held = [] if table is None else list(table.shown().values())
        present = {row["id"]: row["v"] for row in held if row["_ended_at"] == ""}
        assert present == {key: row["v"] for (key,), row in rows.items()}, name
        ended = (row for row in held if row["_ended_at"])
        found = Counter(row["_ended_at"].rpartition(":")[0] for row in ended)
        assert found == +ends.get(name, Counter()), name
        assert all(row["_is_current"] == (row["_ended_at"] == "") for row in held)

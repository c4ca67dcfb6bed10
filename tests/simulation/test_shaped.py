"""Targets of shaped routes under the seeded scheduler equal the shape of the oracle's rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from changes.routes.shaping.shape import Shape as RouteShape
from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import Shape, random_shape
from tests.simulation.source import target_of
from tests.simulation.staging import RealStaging
from tests.simulation.stream import Stream, random_stream

Values = dict[str, Any]

FILTERED = RouteShape(
    filter="v IS NULL OR CAST(v AS bigint) % 2 = 0",
    computed=(("double", "CAST(v AS bigint) * 2"),),
    rename=(("v", "w"),),
)
MASKED = RouteShape(masks=(("v", "keep_last(1)"),), rename=(("v", "w"),))


def filtered(row: Values) -> Values | None:
    """As the route's filter and computed column."""
    number = None if row["v"] is None else int(row["v"])
    if number is not None and number % 2:
        return None
    return {"id": row["id"], "w": row["v"], "double": None if number is None else number * 2}


def masked(row: Values) -> Values:
    """As the route's mask."""
    text = row["v"]
    return {"id": row["id"], "w": text and "*" * (len(text) - 1) + text[-1]}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    ("route", "of"), [(FILTERED, filtered), (MASKED, masked)], ids=["filtered", "masked"]
)
def test_tables_equal_the_shape_of_the_oracles(
    route: RouteShape, of: Callable[[Values], Values | None], seed: int
) -> None:
    """Through crashes, lost replies, rebalances, quarantines; partial rows are masked, too."""
    rng = random.Random(seed)
    drawn = random_shape(rng)
    # A statement that changes v would stop the target.
    shape: Shape = replace(drawn, ddl=0.0, route=route, minimal=drawn.minimal and route is MASKED)
    stream = random_stream(rng, 60, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3)), "refusals": 1}
    durable = live_through(
        stream, rng, rng.randrange(4), rng.choice((0, 4)), faults, staging=RealStaging
    )
    for rows in stream.tables.values():
        shown = {key: of(row) for key, row in rows.items()}
        rows.clear()
        rows.update({key: row for key, row in shown.items() if row is not None})
    assert_equal(durable, stream)


PARTIAL = RouteShape(
    filter="v IS NULL OR CAST(v AS bigint) % 2 = 0",
    rename=(("v", "w"),),
    masks=(("text", "keep_last(1)"),),
)


def kept(row: Values) -> Values | None:
    """As the route's filter and mask."""
    number, text = row["v"], row["text"]
    if number is not None and int(number) % 2:
        return None
    return {"id": row["id"], "w": number, "text": text and "*" * (len(text) - 1) + text[-1]}


@pytest.mark.parametrize("seed", range(40))
def test_partial_rows_are_decided_by_what_is_stored(seed: int) -> None:
    """MINIMAL images under a filter: rows stay, leave, move, stay outside. Those that enter are
    whole: others are refused."""
    rng = random.Random(seed)
    shape = replace(
        random_shape(rng),
        ddl=0.0, lanes=False, route=PARTIAL, minimal=True, columns=("v", "text"),
        whole=lambda row: row["v"] is not None and bool(int(row["v"]) % 2),
    )  # fmt: skip
    stream = random_stream(rng, 60, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3)), "refusals": 1}
    durable = live_through(
        stream, rng, rng.randrange(4), rng.choice((0, 4)), faults, staging=RealStaging
    )
    for rows in stream.tables.values():
        shown = {key: kept(row) for key, row in rows.items()}
        rows.clear()
        rows.update({key: row for key, row in shown.items() if row is not None})
    assert_equal(durable, stream)


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

"""Loads of routes that shape rows, beside a stream: the tables are the routes' in the end.

Rows of the stream are staged by the daemon's own work, rows of the database are shaped by its own
function; the oracle is the route's meaning in plain Python.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from changes.routes.shaping.shape import Shape as RouteShape
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.loads.history import random_history
from tests.simulation.loads.test_loads import assert_loaded
from tests.simulation.loads.world import Driver
from tests.simulation.shape import Shape
from tests.simulation.staging import RealStaging
from tests.simulation.test_shaped import FILTERED, MASKED

Values = dict[str, Any]
SEEDS = int(os.environ.get("SIMULATION_SEEDS", "250"))


class Shaped(NamedTuple):
    """A route, and what it makes of a row. ``minimal``: rows may come in parts."""

    route: RouteShape
    of: Callable[[Values], Values | None]
    minimal: bool


def filtered(row: Values) -> Values | None:
    """Even numbers and nulls alone, with the double, under another name."""
    number = None if row["v"] is None else int(row["v"])
    if number is not None and number % 2:
        return None
    return renamed(row) | {"double": None if number is None else number * 2}


def masked(row: Values) -> Values:
    """The last digit, under another name."""
    text = row["v"]
    return renamed(row) | {"w": text and "*" * (len(text) - 1) + text[-1]}


def renamed(row: Values) -> Values:
    """Columns that a statement has added stay as they are."""
    others = {name: value for name, value in row.items() if name != "v"}
    return others | {"w": row["v"]}


def hidden(row: Values) -> Values:
    """The key, and what is made of a column that is not shown."""
    return {"id": row["id"], "half": None if row["v"] is None else row["v"] + "!"}


HIDDEN = RouteShape(columns=("id",), computed=(("half", "v || '!'"),))
SHAPES = {
    "filtered": Shaped(FILTERED, filtered, minimal=False),
    "masked": Shaped(MASKED, masked, minimal=True),
    "hidden": Shaped(HIDDEN, hidden, minimal=False),
}


def one_seed(shaped: Shaped, seed: int) -> Driver:
    """One database and its load through several lives; the tables are compared at the end."""
    rng = random.Random(seed)
    shape = Shape(
        ddl=rng.choice((0.0, 0.0, 0.05)),
        minimal=shaped.minimal and rng.random() < 0.8,
        quarantine=rng.random() < 0.5,
        route=shaped.route,
    )
    history = random_history(rng, rng.choice((0, 20, 60)), rng.choice((10, 40)), 1, shape)
    faults = {
        "sink_fails": rng.choice((0, 0.3)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 2)),
        "staging": RealStaging,
    }
    durable = LoadDurable.with_history(history, rng.choice(((0.15, 0.15), (0.03, 0.1))))
    driver = Driver(durable, rng, ["t0"], faults, crashes=rng.choice((0, 3)))
    driver.run()
    assert driver.ended_rightly, driver.ended
    if driver.ended != "done":
        return driver  # no later load brings the earlier rows here
    for rows in history.stream.tables.values():
        shown = {key: made for key, row in rows.items() if (made := shaped.of(dict(row)))}
        rows.clear()
        rows.update(shown)
    assert_loaded(durable, history.stream)
    return driver


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("name", SHAPES)
def test_a_shaped_load_beside_the_stream_is_what_the_route_shows(name: str, seed: int) -> None:
    """Statements, changed keys, rows in parts, crashes, lost replies, quarantines."""
    one_seed(SHAPES[name], seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SHAPES)
def test_hundreds_of_shaped_loads(name: str) -> None:
    """Other interleavings; what they have to survive occurs in them."""
    counts: Counter[str] = Counter()
    for seed in range(1000, 1000 + SEEDS):
        try:
            counts.update(one_seed(SHAPES[name], seed).counts)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    for what in ("crash", "statement", "away"):
        assert counts[what] >= 10, (what, counts)
    if SHAPES[name].minimal:
        assert counts["move"], counts  # rare: some three in a hundred seeds

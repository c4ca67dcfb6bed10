"""Loads beside a stream, whatever happens when: the tables are equal in the end.

A failing seed is printed; ``SIMULATION_SEED=<seed>`` runs that one alone, with its trace.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import DdlPolicy
from tests.seeds import ALONE, SEEDS, assert_all_pass
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.loads.history import random_history
from tests.simulation.loads.world import REFUSED, SETTINGS, Driver
from tests.simulation.shape import Shape
from tests.simulation.source import CHANGELOG
from tests.simulation.stream import Stream

RULES = (
    ("time", SETTINGS),
    ("both", SETTINGS),
    # So long that little is by the margin.
    ("positions", replace(SETTINGS, margin_s=30.0)),
    ("reader", replace(SETTINGS, margin_s=30.0)),
)
"""What the database and its messages tell, and how long a commit may be unseen."""


def shape_of(rng: random.Random) -> Shape:
    """What goes together with a load."""
    return Shape(
        ddl=rng.choice((0.0, 0.0, 0.03, 0.1)),
        minimal=rng.random() < 0.5,
        quarantine=rng.random() < 0.5,
        policy=DdlPolicy(drop_column=rng.choice(("keep", "follow"))),
    )


def one_seed(seed: int) -> Driver:
    """One database and its load through several lives; the tables are compared at the end."""
    rng = random.Random(seed)
    tables, messages = rng.choice((1, 1, 2, 3)), rng.choice((10, 40, 80))
    history = random_history(rng, rng.choice((0, 20, 60)), messages, tables, shape_of(rng))
    faults = {
        "sink_fails": rng.choice((0, 0.2, 0.5)),
        "disk_fails": rng.choice((0, 0.3)),
        "refusals": rng.choice((0, 0, 2)),
    }
    pace = rng.choice(((0.15, 0.15), (0.01, 0.15), (0.15, 0.03), (0.03, 0.03), (0.0, 0.1)))
    replica = rng.choice((None, None, 0.1, 0.03))
    tells, settings = random.Random(f"tells {seed}").choice(RULES)
    durable = LoadDurable.with_history(history, pace, replica, tells)
    durable.clockwork.margin_s = settings.margin_s
    names = [f"t{number}" for number in range(tables)]
    crashes = rng.choice((0, 2, 6))
    tells_all = rng.random() < 0.7
    driver = Driver(durable, rng, names, faults, settings, crashes, tells_all=tells_all)
    driver.run()
    assert driver.ended_rightly, driver.ended
    assert_loaded(durable, history.stream, driver.ended or "")
    return driver


def assert_loaded(durable: LoadDurable, stream: Stream, failed: str = "") -> None:
    """Each table is what the database has; the changelog beside them has each change once; nothing
    is left of what the load made on its way. Those that are named as ``failed`` lack rows of
    before."""
    sink = durable.sink
    for name, rows in stream.tables.items():
        if f"{name}: {REFUSED}" in failed:
            continue
        columns = {column for row in rows.values() for column in row}
        shown = {
            key: {column: row.get(column) for column in columns}
            for key, row in (sink.tables[name].shown() if name in sink.tables else {}).items()
        }
        assert shown == rows, name
        assert not any("/" in lane.topic for lane in sink.marks(name)), name
    entries = sink.tables[CHANGELOG].entries if CHANGELOG in sink.tables else []
    for source, log in stream.changelog.items():
        assert [entry for entry in entries if entry[1] == source.partition] == log, source
    assert not [name for name in sink.tables if "__rebuild_" in name]
    assert not any(records for _, records in durable.spills.files.values())


@pytest.mark.parametrize("seed", range(120))
def test_a_load_beside_the_stream_is_equal(seed: int) -> None:
    """Crash anywhere, lose replies, see commits late or early: the rows are the source's."""
    one_seed(seed)


@pytest.mark.parametrize("seed", range(40))
def test_a_load_that_is_given_up_leaves_the_table_as_the_stream_makes_it(seed: int) -> None:
    """Cancelled at any moment: what came meanwhile is applied to the old table."""
    rng = random.Random(seed)
    history = random_history(rng, 0, rng.choice((10, 40)), 2, Shape(minimal=rng.random() < 0.5))
    durable = LoadDurable.with_history(history, (0.1, 0.1))
    driver = Driver(durable, rng, ["t0", "t1"], {"sink_fails": 0.2}, crashes=2)
    driver.cancel_at = rng.randrange(2, 40)
    driver.run()
    assert driver.ended == "cancelled" or driver.ended_rightly, driver.ended
    assert_loaded(durable, history.stream)


@pytest.mark.parametrize("seed", range(60))
def test_a_table_that_can_not_take_its_name_goes_on_as_it_was(seed: int) -> None:
    """Refused at the end, now and then or for good, through crashes: no message is lost to the old
    table, and no other one stands."""
    refused_seed(seed)


def refused_seed(seed: int) -> str:
    """One load whose sink refuses names; how it ended."""
    rng = random.Random(seed)
    tables, messages = rng.choice((1, 2, 3)), rng.choice((10, 40))
    # No row is older than the stream: where a load is given up, nothing but a load has those.
    history = random_history(rng, 0, messages, tables, shape_of(rng))
    durable = LoadDurable.with_history(history, rng.choice(((0.1, 0.1), (0.03, 0.15))))
    refusing = random.Random(seed + 1)
    often, for_good = rng.choice(((0.3, 0.5), (0.9, 0.0), (0.9, 0.1)))

    def refusal() -> Exception | None:
        if refusing.random() > often:
            return None
        final = refusing.random() < for_good
        return TargetRefused("a view is there") if final else SinkUnavailable("a lock")

    durable.refusals = refusal
    names = [f"t{number}" for number in range(tables)]
    driver = Driver(durable, rng, names, {"sink_fails": 0.1}, crashes=rng.choice((0, 3)))
    driver.run()
    # What could not be removed so far is removed by the next start.
    durable.refusals = lambda: None
    durable.settle()
    assert not durable.snapshot.rebuilds
    assert driver.ended is not None
    assert_loaded(durable, history.stream)
    return driver.ended


def test_names_are_refused_and_given_often() -> None:
    """What the seeds never come to is not proved by them."""
    ended = [refused_seed(seed) for seed in range(60)]
    assert sum(said == "done" for said in ended) >= 5, ended
    assert sum("a view is there" in said for said in ended) >= 5, ended
    assert sum("a lock" in said for said in ended) >= 5, ended


def test_too_many_attempts_in_an_hour_end_it_by_name() -> None:
    """Each had begun to read; then the old table goes on."""
    rng = random.Random(5)
    history = random_history(rng, 0, 80, 1, Shape(ddl=0.3))
    durable = LoadDurable.with_history(history, (0.02, 0.02))
    settings = replace(SETTINGS, attempts_per_hour=1)
    driver = Driver(durable, rng, ["t0"], {}, settings)
    driver.run()
    assert driver.ended is not None
    assert "1 attempt in an hour" in driver.ended
    assert not durable.snapshot.rebuilds


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "seeds",
    [pytest.param(1_000, marks=pytest.mark.long), pytest.param(SEEDS, marks=pytest.mark.soak)],
)
def test_thousands_of_loads_are_equal(seeds: int) -> None:
    """Every seed is another interleaving of reads, changes, statements, crashes and failures."""
    if ALONE is not None:
        driver = one_seed(int(ALONE))
        print(*driver.trace, sep="\n")
        return
    assert_all_pass(one_seed, seeds)


def test_what_a_load_has_to_survive_occurs_often() -> None:
    """What the seeds never come to is not proved by them."""
    counts: Counter[str] = Counter()
    for seed in range(100):
        counts.update(one_seed(seed).counts)
    for name in ("crash", "statement", "move", "altered", "away", "hidden"):
        assert counts[name] >= 3, (name, counts)

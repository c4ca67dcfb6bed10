"""The whole comparison at a tiny size, on the real broker, with real contestants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.compare.comparison import Comparison
from bench.compare.contestants import CONTESTANTS, Contestant
from bench.compare.places import Folder
from bench.compare.workloads import Workload, workloads
from demo.broker import DevBroker
from tests.needs import missing, needed

TINY = replace(workloads(1.0)["wide"], changes=400, tables=3)
IDLE = Contestant("idle", "does nothing", "tests.bench.compare.idle")
HONEST = replace(IDLE, name="honest", variant={"reached": "0"})

# Three JVMs start one after another: on a machine with much else to do that takes minutes.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    """One broker and one Spark of the harness for all; one run of each contestant."""
    folder = tmp_path_factory.mktemp("compare")
    contestants = {**CONTESTANTS, IDLE.name: IDLE, HONEST.name: HONEST}
    with (
        DevBroker(folder / "broker") as broker,
        Comparison(folder, broker.bootstrap, 2, Folder(folder), print, 1, contestants) as started,
    ):
        yield started


def test_who_differs_has_no_figure(comparison: Comparison) -> None:
    """Only what is wrong with its tables."""
    comparison.run(replace(TINY, name="idled", topic_of=TINY.name).of((IDLE.name,)))
    entry = comparison.results["idled"][IDLE.name]
    assert entry.equal is False
    assert entry.runs == []
    assert entry.ratios == {}
    assert re.match(r"its tables differ: t\d: 1 missing: \{'id': ", entry.reason or "")
    assert not comparison.is_sound


def test_preloaded_tables_are_what_the_fold_begins_with(comparison: Comparison) -> None:
    """Equal before the first update, which whoever has done nothing has reached; not after."""
    hot = replace(workloads(1.0)["hot"], changes=40, preload=1_000)
    comparison.run(hot.of((HONEST.name, IDLE.name)))
    found = comparison.results[hot.name]
    assert found[HONEST.name].equal is True
    assert found[HONEST.name].runs == []
    assert str(found[HONEST.name].reason).startswith("nothing was visible after")
    assert found[IDLE.name].equal is False


def test_a_time_box_is_judged_at_the_offset_that_was_reached(comparison: Comparison) -> None:
    """Whoever wrote nothing of a stream differs from its first message on."""
    early = replace(IDLE, name="early", variant={"reached": "1"})
    few = replace(TINY, name="early", topic_of=TINY.name)
    before = comparison.contestants
    comparison.contestants = {**before, early.name: early}
    comparison.run(few.of((early.name,)))
    comparison.contestants = before
    reason = comparison.results["early"]["early"].reason
    assert reason is not None
    assert reason.count("missing") == 1


def test_contestants_end_with_equal_tables(comparison: Comparison) -> None:
    """binlogd and the naive design, which is in its time box long enough for so little."""
    comparison.run(TINY.of(("binlogd", "naive")))
    found = comparison.results[TINY.name]
    assert {name: (entry.equal, entry.reason) for name, entry in found.items()} == {
        "binlogd": (True, None),
        "naive": (True, None),
    }
    (run,) = found["binlogd"].runs
    assert run.rows == TINY.changes
    assert run.rows_per_s == pytest.approx(run.rows / run.seconds, rel=0.01)
    assert run.cpu_s_per_million > 0
    assert run.rss_mb > 30
    assert run.jvm_rss_mb > 100
    assert run.scan_s is not None
    assert found["binlogd"].ratios["rows_per_s"] == (1.0, 1.0, 1.0)


def test_topics_as_debezium_makes_them(comparison: Comparison) -> None:
    """A topic a table in Avro with a registry; keys over partitions beside one partition."""
    with needed():
        comparison.run(few("wide-avro").of(("binlogd",)))
    comparison.run(few("wide-keyed"))
    found = comparison.results["wide-avro"] | comparison.results["wide-keyed"]
    assert {name: (entry.equal, entry.reason) for name, entry in found.items()} == {
        "binlogd": (True, None),
        "binlogd-one-partition": (True, None),
    }
    assert all(run.rows == TINY.changes for entry in found.values() for run in entry.runs)


def few(name: str) -> Workload:
    """A workload of a tiny size."""
    return replace(workloads(1.0)[name], changes=TINY.changes, tables=TINY.tables)


@pytest.mark.parametrize("name", ["databases-postgresql", "databases-mariadb"])
def test_rows_of_a_database_are_compared_too(comparison: Comparison, name: str) -> None:
    """binlogd's are equal; those of whoever has done nothing are missing."""
    small = replace(workloads(1.0)[name], name=f"small-{name}", changes=400, tables=3, topic_of="")
    comparison.run(small.of(("binlogd", IDLE.name)))
    found, idle = (comparison.results[small.name][one] for one in ("binlogd", IDLE.name))
    if "is missing: `apt-get" in str(found.reason):
        missing(small.database, str(found.reason))
    assert (found.equal, found.reason) == (True, None)
    assert found.runs[0].requests_per_million is None
    assert found.runs[0].lake_cpu_s_per_million is not None
    assert idle.equal is False
    assert re.match(r"its tables differ: t\d: 1 missing: \('", idle.reason or "")

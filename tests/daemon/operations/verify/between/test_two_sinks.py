"""A table in two real sinks, compared with each other while no source is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from daemon.operations.engine.record import new_job
from daemon.operations.verify.at_cut import AtCut
from tests.daemon.operations.verify.between.pair_rig import PairRig, rows_of
from tests.daemon.operations.verify.rig import LANE
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = pytest.mark.integration


@pytest.fixture(params=["postgresql", "mariadb", "lake"])
def pair(
    request: pytest.FixtureRequest,
    servers: Mapping[str, Server],
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> PairRig:
    """300 equal rows in a lake, and in a database or in the lake once more."""
    with needed():
        server = None if request.param == "lake" else servers[request.param]
    made = PairRig(server, spark, tmp_path, lake_conf)
    made.filled()
    return made


def keys(table: dict[str, Any]) -> dict[str, str]:
    return {row["key"]["id"]: row["what"] for row in table["rows_that_differ"]}


def test_equal_targets_are_equal(pair: PairRig) -> None:
    """Every column is compared."""
    table = pair.compared()
    assert table["equal"], table
    assert table["rows"] == table["target_rows"] == 300
    assert (table["notes"], table["undecided"]) == ([], [])
    assert table["between"] == str(pair.second)


def test_what_is_wrong_on_either_side_is_told(pair: PairRig) -> None:
    """Whichever of the two is wrong: who looks sees both values."""
    pair.lake("UPDATE {t} SET note = 'stale' WHERE id = 5")
    pair.lake("DELETE FROM {t} WHERE id = 6")
    pair.lake("UPDATE {t} SET made = made + INTERVAL '0.000001' SECOND WHERE id = 7")
    pair.other("UPDATE {t} SET price = price + 0.01 WHERE id = 8")
    pair.other("DELETE FROM {t} WHERE id = 9")
    pair.other("UPDATE {t} SET note = NULL WHERE id = 10")
    table = pair.compared()
    assert keys(table) == {"5": "differs", "6": "extra", "7": "differs", "8": "differs",
                           "9": "missing", "10": "differs"}  # fmt: skip
    found = {row["key"]["id"]: row["columns"] for row in table["rows_that_differ"]}
    assert found["5"] == {"note": ["stale", "note 5"]}
    assert found["8"] == {"price": ["8.05", "8.06"]}
    assert not table["undecided"]


@pytest.mark.parametrize("more", ["id", "NULL"])
def test_rows_that_no_key_tells_apart_are_named(pair: PairRig, more: str) -> None:
    """A row that is there twice has the hash that the other side has."""
    pair.lake(f"INSERT INTO {{t}} SELECT {more}, note, price, made FROM {{t}} WHERE id = 5")
    table = pair.compared()
    assert not table["equal"], table
    named = "several rows of the key 5" if more == "id" else "a row with NULL in its key"
    assert table["skipped"] == f"{pair.first} has {named}"


@pytest.mark.parametrize("behind", ["first", "second"])
def test_a_side_that_lags_is_waited_for(pair: PairRig, behind: str) -> None:
    """Rows on their way are no differences; one that is wrong beside them is told."""
    ahead, lags = pair.first, pair.second
    if behind == "first":
        ahead, lags = lags, ahead
    for number in range(20):
        pair.changed(number, f"newer {number}")
    pair.changed(20, None)
    pair.caught_up(ahead)
    pair.other("UPDATE {t} SET note = 'wrong' WHERE id = 100")
    pair.control.before_wait = lambda: pair.caught_up(lags)
    table = pair.compared()
    assert keys(table) == {"100": "differs"}, table
    assert not table["undecided"]


def test_a_paused_target_is_compared_where_the_log_has_no_change(pair: PairRig) -> None:
    """Rows that changed since are undecided, by name, also an equal one: the first side may have
    lost its change. The others are exact."""
    pair.paused(pair.second)
    for number in range(3):
        pair.changed(number, f"newer {number}")
    pair.caught_up(pair.first)
    pair.lake("UPDATE {t} SET note = 'note 2', price = 2.05, made = made + INTERVAL '0.000002'"
              " SECOND WHERE id = 2")  # fmt: skip
    pair.lake("UPDATE {t} SET note = 'wrong' WHERE id = 100")
    table = pair.compared()
    assert keys(table) == {"100": "differs"}
    assert sorted(each["key"] for each in table["undecided"]) == [["0"], ["1"], ["2"]]
    (why,) = {each["why"] for each in table["undecided"]}
    assert f"{pair.second} does not follow: its sink is away" in why


def test_a_change_that_one_has_lost_and_the_other_does_not_have_yet(pair: PairRig) -> None:
    """Their rows are equal at first, for the wrong reason."""
    pair.changed(5, "newer")
    pair.changed(6, "newer")
    pair.caught_up(pair.first)
    pair.lake("UPDATE {t} SET note = 'note 5', price = 5.05, made = made + INTERVAL '0.000005'"
              " SECOND WHERE id = 5")  # fmt: skip
    pair.control.before_wait = lambda: pair.caught_up(pair.second)
    table = pair.compared()
    assert keys(table) == {"5": "differs"}, table
    assert not table["undecided"]


def test_a_row_that_moves_amid_the_comparison_is_followed(pair: PairRig) -> None:
    """No look goes by the positions of before: each has its own."""
    pair.lake("UPDATE {t} SET note = 'wrong' WHERE id = 50")
    changes = iter(range(200, 220))

    def go_on() -> None:
        if (number := next(changes, None)) is not None:
            pair.changed(number, "moving")
            pair.caught_up(pair.first)
            pair.control.before_wait = lambda: pair.caught_up(pair.second)

    result = pair.finished(new_job(pair.plan().wanted[0], 0), go_on)
    (table,) = result["tables"]
    assert keys(table) == {"50": "differs"}, table
    assert not table["undecided"]


def test_a_sample_reads_a_part_of_the_ranges(pair: PairRig) -> None:
    """By the index of a database, or by the lake's lowest and highest number."""
    pair.changed(10**6, "more")
    for target in (pair.first, pair.second):
        pair.write(target, rows_of(range(300, 12_000), pair.rows), 1)
    pair.control.done = 2
    pair.lake("UPDATE {t} SET note = 'wrong' WHERE id IN (5, 11000)")
    whole, half = pair.compared(), pair.compared(sample=0.5)
    assert (whole["ranges"], half["ranges"]) in ((2, 1), (3, 2)), whole
    assert keys(whole) == {"5": "differs", "11000": "differs"}
    assert 0 < half["rows"] == half["target_rows"] <= whole["rows"] == 12_000  # one may be empty


def test_what_postgresql_does_not_hold_is_named(
    servers: Mapping[str, Server], spark: SparkSession, tmp_path: Path, lake_conf: Mapping[str, str]
) -> None:
    """A NULL in its place is no difference, and another NULL is one."""
    with needed():
        server = servers["postgresql"]
    pair = PairRig(server, spark, tmp_path, lake_conf, sink={"unstorable": "null"})
    pair.filled(number=0)
    pair.changed(1, "a\0b")
    pair.changed(2, "plain")
    pair.caught_up()
    table = pair.compared()
    assert table["equal"], table
    assert [note for note in table["notes"] if "the character NUL" in note]
    pair.other("UPDATE {t} SET note = NULL")
    assert keys(pair.compared()) == {"2": "differs"}


def test_a_column_that_one_of_them_drops_is_named(
    servers: Mapping[str, Server], spark: SparkSession, tmp_path: Path, lake_conf: Mapping[str, str]
) -> None:
    """The others are compared. A key that is renamed is found in the log by the source's name."""
    with needed():
        server = servers["mariadb"]
    routes = {"rename": {"id": "number"}}, {"drop_columns": ["price"]}
    pair = PairRig(server, spark, tmp_path, lake_conf, routes)
    pair.changed(10**6, "first")
    rows = rows_of(range(50), pair.rows)
    names = ["number" if name == "id" else name for name in rows.column_names]
    pair.write(pair.first, rows.rename_columns(names), 0, ("number",))
    pair.write(pair.second, rows.drop_columns(["price"]), 0)
    pair.control.done = 1
    pair.paused(pair.second)
    pair.changed(7, "newer")
    newer = rows_of([7], pair.rows, {7: "newer"})
    pair.write(pair.first, newer.rename_columns(names), 1, ("number",))
    pair.control.done = 2
    pair.lake("UPDATE {t} SET note = 'wrong' WHERE number = 8")
    table = pair.compared()
    assert table["notes"] == [f"not compared: column price, which {pair.second} has not"]
    assert [row["key"] for row in table["rows_that_differ"]] == [{"number": "8"}]
    assert [each["key"] for each in table["undecided"]] == [["7"]]


def test_the_first_side_as_it_is_in_a_cut(pair: PairRig) -> None:
    """What changed since the cut is counted; what was wrong in the cut is told."""
    pair.lake("UPDATE {t} SET note = 'wrong' WHERE id = 100")
    version = pair.session.sql(
        f"SELECT snapshot_id FROM lake.`{pair.schema}`.t.refs WHERE name = 'main'"
    ).collect()[0][0]
    at = pair.log.logs[LANE].high
    versions = {str(pair.first): str(version)}
    pair.lake("UPDATE {t} SET note = 'note 100' WHERE id = 100")
    pair.lake("UPDATE {t} SET note = 'later' WHERE id = 101")
    for number in range(5):
        pair.changed(number, f"newer {number}")
    pair.caught_up()
    cut = AtCut(7, None, None, {LANE: at}, versions, {}).document()
    table = pair.compared(at_cut=cut)
    assert (keys(table), table["changed_since"]) == ({"100": "differs"}, 5), table
    assert f"between the cut and {pair.second} as it is" in table["notes"][0]

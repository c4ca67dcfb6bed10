"""Loads and verifications of a route that shapes rows, where Spark reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.daemon.operations.copies import load_into
from tests.daemon.operations.verify.rig import Rig
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = pytest.mark.integration

ROUTES = {
    "filter": {
        "filter": "price > 50 OR id < 10",
        "computed": {"twice": "price * 2"},
        "mask": {"id": "sha256", "name": "keep_last(3)"},
        "mask_salt": "a salt of some length",
        "rename": {"id": "number"},
        "drop_columns": ["note"],
    },
    "soft": {"delete": "soft", "metadata": ["_op"], "columns": ["id", "name", "price"]},
}


@pytest.fixture(params=list(ROUTES))
def rig(
    request: pytest.FixtureRequest,
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """A table of 120 rows, and what its route shows of it."""
    with needed():
        server = servers["mariadb"]
    made = Rig(server, spark, tmp_path, lake_conf, ROUTES[request.param])
    made.run(
        f"CREATE TABLE {made.schema}.t (id INT PRIMARY KEY, name VARCHAR(40), note TEXT,"
        " price DECIMAL(10,2))"
    )
    rows = ", ".join(f"({n}, 'name {n}', 'note', {n}.05)" for n in range(120))
    made.run(f"INSERT INTO {made.schema}.t VALUES {rows}")
    load_into(made.control, made.table, made.target, 50)
    return made


def test_what_is_loaded_is_equal_and_what_is_planted_is_repaired(rig: Rig) -> None:
    """The comparison shapes the source's rows by the stream's own function."""
    (table,) = rig.verified()["tables"]
    assert table["equal"], table
    soft = rig.route == ROUTES["soft"]
    assert table["rows"] == table["target_rows"] == (120 if soft else 80)
    rig.lake("UPDATE {t} SET name = '*****x 7' WHERE name LIKE '%e 7'")
    rig.lake("DELETE FROM {t} WHERE price = 100.05")
    (table,) = rig.verified(repair=True)["tables"]
    assert sorted(row["what"] for row in table["rows_that_differ"]) == ["differs", "missing"]
    (again,) = rig.verified()["tables"]
    assert again["equal"], again


@pytest.mark.parametrize("rig", ["soft"], indirect=True)
def test_a_row_that_was_deleted_softly_does_not_count(rig: Rig) -> None:
    """The source has none, and the target keeps it."""
    rig.run(f"DELETE FROM {rig.schema}.t WHERE id = 5")
    rig.lake("UPDATE {t} SET _deleted = true WHERE id = 5")
    (table,) = rig.verified()["tables"]
    assert table["equal"], table
    assert table["rows"] == table["target_rows"] == 119

"""Verification of one partition of targets that show their rows otherwise than the source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.operations.verify.partitions import copied, told
from tests.databases.base.servers import Server

ROUTES: dict[str, dict[str, Any]] = {
    "plain": {"rename": {"made": "created"}, "metadata": ["_op"]},
    "masked": {
        "rename": {"made": "created"},
        "mask": {"id": "sha256"},
        "mask_salt": "a salt of some length",
    },
    "soft": {"rename": {"made": "created"}, "delete": "soft"},
    "filter": {"rename": {"made": "created"}, "filter": "id <> 19"},
}


@pytest.mark.parametrize("name", list(ROUTES))
def test_a_route_that_shapes_rows(servers: Mapping[str, Server], tmp_path: Path, name: str) -> None:
    """The target's name is given, and the source is asked by its own. Where the key is masked all
    rows are looked at for one that has moved: it is not taken for a row that is gone."""
    copy = copied(servers, ("mariadb", "mariadb"), tmp_path, **ROUTES[name])
    day, rows = "created=2026-11-25", 9 if name == "filter" else 10
    table = copy.verified(partition=day)
    assert (table["equal"], table["rows"], table["target_rows"]) == (True, rows, rows), table
    copy.plant(
        "UPDATE {t} SET created = '2026-11-25 12:00:00' WHERE note = 'note 21'",
        "UPDATE {t} SET created = '2026-11-26 12:00:00' WHERE note = 'note 12'",
        "DELETE FROM {t} WHERE note IN ('note 13', 'note 24')",
        "UPDATE {t} SET note = 'wrong' WHERE note = 'note 5'",
    )
    table = copy.verified(partition=day, repair=True)
    assert sorted(row["what"] for row in table["rows_that_differ"]) == [
        "differs", "differs", "missing",
    ]  # fmt: skip
    assert len(table["repaired"]) == 3, table
    assert copy.verified(partition=day)["equal"]
    rest = copy.verified()
    assert sorted(row["what"] for row in rest["rows_that_differ"]) == ["differs", "missing"]


def test_a_reader_that_renames_the_column(servers: Mapping[str, Server], tmp_path: Path) -> None:
    """The stream and the target have its name, the database its own."""
    route = {"reader_renames": {"made": "created"}}
    copy = copied(servers, ("mariadb", "mariadb"), tmp_path, **route)
    copy.plant("UPDATE {t} SET note = 'x' WHERE id IN (10, 20)")
    assert told(copy.verified(partition="created=2026-11-25")) == {10: "differs"}

"""What status says of a pipeline's counts."""

from __future__ import annotations

import pytest

from actors.contract.of_counts import CountFigures
from daemon.admin.status.health import conditions
from tests.daemon.admin.page.documents import NOW_MS, status, target

NOW = NOW_MS // 1000


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (None, []),
        (CountFigures(None), []),
        (CountFigures("away", NOW - 60), [
            ("passing", "counts have not come into their table for 60 s: away"),
        ]),
        (CountFigures("away", NOW - 180), [
            ("ill", "counts have not come into their table for 3 min: away"),
        ]),
    ],
)  # fmt: skip
def test_a_table_of_counts_that_takes_nothing_is_told(
    figures: CountFigures | None, expected: list[tuple[str, str]]
) -> None:
    """A pipeline that counts nothing has nothing to tell."""
    found = conditions(status([target("lake.s.t", 5)], counts=figures))
    assert [(one.level, one.line) for one in found] == expected
    assert all(one.kind == "counts_not_folded" for one in found)

"""What status says of a pipeline's counts."""

from __future__ import annotations

import pytest

from actors.contract.of_counts import SideFigures
from daemon.admin.status.health import conditions
from tests.daemon.admin.page.documents import NOW_MS, status, target

NOW = NOW_MS // 1000


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (None, []),
        (SideFigures(None), []),
        (SideFigures("away", NOW - 60), [
            ("passing", "counts have not come into their table for 60 s: away"),
        ]),
        (SideFigures("away", NOW - 180), [
            ("ill", "counts have not come into their table for 3 min: away"),
        ]),
    ],
)  # fmt: skip
def test_a_table_of_counts_that_takes_nothing_is_told(
    figures: SideFigures | None, expected: list[tuple[str, str]]
) -> None:
    """A pipeline that counts nothing has nothing to tell."""
    found = conditions(status([target("lake.s.t", 5)], counts=figures))
    assert [(one.level, one.line) for one in found] == expected
    assert all(one.kind == "counts_not_folded" for one in found)


def test_a_table_that_does_not_say_what_gates_closed_is_told() -> None:
    """While it says less than is so."""
    for since, level in ((NOW - 60, "passing"), (NOW - 180, "ill")):
        figures = SideFigures("lake.s.t: away", since)
        (found,) = conditions(status([target("lake.s.t", 5)], through=figures))
        assert (found.kind, found.level) == ("valid_through_not_set", level)
        assert found.line.startswith("a table has not said what gates closed for ")
        assert found.line.endswith(": lake.s.t: away")
    assert list(conditions(status([target("lake.s.t", 5)], through=SideFigures(None)))) == []

"""Four faults of ``make chaos`` against the real daemon under load; the others run there."""

from __future__ import annotations

import pytest

from tests.chaos.run import FAULTS
from tests.integration.rig import Rig


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "fault",
    ["in the middle of a write", "after the commit, before Written", "between file and Kafka",
     "jvm killed"],
)  # fmt: skip
def test_nothing_is_lost_and_nothing_comes_twice(rig: Rig, fault: str) -> None:
    """Tables equal the source row by row; the changelog has each committed message once."""
    outcome = FAULTS[fault](rig)
    assert outcome.messages > 0
    assert outcome.good, outcome
    if fault == "jvm killed":
        assert outcome.restarts == 0

"""Four faults of ``make chaos`` against the real daemon under load; the others run there."""

from __future__ import annotations

import pytest

from tests.chaos.faults import several_in_turn
from tests.integration.rig import Rig

pytestmark = pytest.mark.long


@pytest.mark.timeout(1500)
def test_four_faults_in_turn_lose_nothing_and_double_nothing(rig: Rig) -> None:
    """Killed in the middle of a write, after the commit, between file and Kafka; then the JVM is.

    Tables equal the source row by row, the changelog has each committed change once, and each bad
    record is among the dead letters.
    """
    outcome = several_in_turn(rig)
    assert min(outcome.messages, outcome.letters, outcome.statements) > 0
    assert outcome.good, outcome
    assert outcome.restarts == 3  # and the fourth fault was the JVM's alone

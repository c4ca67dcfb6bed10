"""Who is killed, and when."""

from __future__ import annotations

from tests.live.kills import Victim, plan


def test_each_victim_has_its_step() -> None:
    """By the seed alone, and always amid the steps."""
    for seed in range(30):
        found = plan(seed, 40)
        assert found == plan(seed, 40)
        assert set(found.values()) == set(Victim) - {Victim.REGISTRY}
        assert set(plan(seed, 40, registry=True).values()) == set(Victim)
        assert all(1 < step < 40 for step in found)

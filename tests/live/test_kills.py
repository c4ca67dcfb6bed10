"""Who is killed, and when."""

from __future__ import annotations

from tests.live.kills import HANDS, Victim, handovers, plan


def test_each_victim_has_its_step() -> None:
    """By the seed alone, and always amid the steps."""
    for seed in range(30):
        found = plan(seed, 40)
        assert found == plan(seed, 40)
        assert set(found.values()) == set(Victim) - {Victim.REGISTRY}
        assert set(plan(seed, 40, registry=True).values()) == set(Victim)
        assert all(1 < step < 40 for step in found)


def test_each_stretch_has_two_hand_overs_amid_it() -> None:
    """A short one has fewer; none stands behind a checkpoint's step."""
    for seed in range(30):
        found = handovers(seed, 40, 20)
        assert found == handovers(seed, 40, 20)
        assert [sum(low < step < low + 20 for step in found) for low in (0, 20)] == [2, 2]
        assert set(found.values()) <= set(HANDS)
    assert len(handovers(1, 4, 2)) == 2
    assert handovers(1, 1, 1) == {}

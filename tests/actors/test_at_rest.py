"""Of thousands of targets most are at rest: they cost nothing at the others' messages."""

from __future__ import annotations

import time

import pytest

from tests.actors.processor_rig import ProcessorRig, canal


def rig_with(targets: int) -> ProcessorRig:
    """A processor that has written each of its targets once."""
    rig = ProcessorRig(batch_age_s=0.0)
    for number in range(targets):
        rig.send(f"t{number}", (number, canal(f"t{number}", 1, "a")))
        while rig.work:
            rig.write()
    return rig


def best_of_a_tick(rig: ProcessorRig) -> float:
    """Seconds that a message of nobody's takes."""
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        rig.tick(0.0)
        times.append(time.perf_counter() - begun)
    return min(times)


def test_a_message_costs_the_same_with_many_targets_at_rest() -> None:
    """Going through all of them would make it some fifty times as much."""
    assert best_of_a_tick(rig_with(300)) < 5 * best_of_a_tick(rig_with(1))


@pytest.mark.parametrize("targets", [1, 5])
def test_a_target_at_rest_wakes_with_its_next_message(targets: int) -> None:
    """And is written as ever."""
    rig = rig_with(targets)
    rig.send("t0", (targets, canal("t0", 2, "b")))
    while rig.work:
        rig.write()
    assert rig.rows["lake.db.t0"] == {(1,): "a", (2,): "b"}

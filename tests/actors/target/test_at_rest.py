"""Of thousands of targets most are at rest: they cost nothing at the others' messages."""

from __future__ import annotations

import pytest

from actors.target.buffer import TargetBuffer
from tests.actors.target.processor_rig import ProcessorRig, canal


def rig_with(targets: int) -> ProcessorRig:
    """A processor that has written each of its targets once."""
    rig = ProcessorRig(batch_age_s=0.0)
    for number in range(targets):
        rig.send(f"t{number}", (number, canal(f"t{number}", 1, "a")))
        while rig.work:
            rig.write()
    return rig


def test_a_message_looks_at_no_target_that_is_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through all of them would cost more than the work."""
    rig = rig_with(300)
    looked_at: list[str] = []
    advance = rig.logic._advance

    def look(buffer: TargetBuffer, now: float) -> list[object]:
        looked_at.append(buffer.name)
        return advance(buffer, now)

    monkeypatch.setattr(rig.logic, "_advance", look)
    rig.tick(0.0)
    assert looked_at == []
    rig.send("t7", (300, canal("t7", 2, "b")))
    assert set(looked_at) == {"lake.db.t7"}


@pytest.mark.parametrize("targets", [1, 5])
def test_a_target_at_rest_wakes_with_its_next_message(targets: int) -> None:
    """And is written as ever."""
    rig = rig_with(targets)
    rig.send("t0", (targets, canal("t0", 2, "b")))
    while rig.work:
        rig.write()
    assert rig.rows["lake.db.t0"] == {(1,): "a", (2,): "b"}

"""What one pipeline has waiting for a sink's writers: who waits for whom."""

from __future__ import annotations

import random

import pytest

from actors.contract.addresses import Address
from actors.contract.messages import OpenTarget, WriteBatch
from actors.contract.writes import StagedBatch
from changes.model.model import Mode, TableSchema, TargetName
from daemon.app.requests import InTurns

ME = Address("p", "processor")


def opening(number: int) -> OpenTarget:
    return OpenTarget(TargetName("lake", "s", f"t{number}"), ME)


def write(number: int) -> WriteBatch:
    target = TargetName("lake", "s", "written")
    batch = StagedBatch(f"w{number}", target, Mode.UPSERT, TableSchema((), ()), {}, None, 0)
    return WriteBatch(batch, {}, {}, ME, ME)


def taken(queue: InTurns) -> list[str]:
    """What a writer that never gets more to do takes, in order: the tables' and writes' names."""
    names = []
    while len(queue):
        request = queue.take()
        names.append(
            request.target.table if isinstance(request, OpenTarget) else request.batch.batch_id
        )
    return names


def test_a_write_does_not_wait_for_a_thousand_openings() -> None:
    """A restart opens all tables that have news; the frontier moves with the first write."""
    queue = InTurns()
    for number in range(1000):
        queue.add(opening(number))
    for number in range(2):
        queue.add(write(number))
    names = taken(queue)
    assert names[:5] == ["t0", "w0", "t1", "w1", "t2"]
    assert len(names) == 1002


def test_an_opening_is_passed_by_one_write_at_most() -> None:
    """Writes that keep coming can't keep a table closed."""
    queue = InTurns()
    for number in range(3):
        queue.add(opening(number))
    openings = []
    for number in range(6):
        queue.add(write(number))
        openings.append(isinstance(queue.take(), OpenTarget))
    assert openings == [True, False] * 3


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_keeps_its_order_and_nothing_is_lost(seed: int) -> None:
    """Whatever comes in whatever order."""
    chance, queue = random.Random(seed), InTurns()
    for number in range(40):
        queue.add(chance.choice((opening, write))(number))
    names = taken(queue)
    for kind in "tw":
        numbers = [int(name[1:]) for name in names if name[0] == kind]
        assert numbers == sorted(numbers)
    assert sorted(int(name[1:]) for name in names) == list(range(40))

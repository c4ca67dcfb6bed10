"""Who waits for a target that is in quarantine holds up nobody: it goes there as well."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import StagedBatch, TargetState
from actors.runtime.effect_handlers import WriterEffects
from changes.model.errors import WaitsForName
from changes.model.model import Mode, TableSchema, TargetName
from changes.routes.routing import shard_of
from tests.actors.target.processor_rig import ME, ProcessorRig, canal

T, U, V = "lake.db.t", "lake.db.u", "lake.db.v"


def waiting(folder: Path, **settings: Any) -> ProcessorRig:
    """``t`` is in quarantine, ``u`` is to get its name, and ``v`` that of ``u``."""
    rig = ProcessorRig(folder, **({"quarantine": True} | settings))
    rig.waits = {U: T, V: U}
    rig.refusing[T] = "the type can't widen"
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.send("u", (2, canal("u", 1, "b")))
    rig.settle()
    rig.send("v", (3, canal("v", 1, "c")))
    rig.settle()
    return rig


def reasons(rig: ProcessorRig) -> dict[object, str]:
    """Why each target went into quarantine."""
    said = [log.fields for log in rig.logs if log.event == "quarantined"]
    return {fields["target"]: str(fields["reason"]) for fields in said}


def test_who_waits_goes_into_quarantine_and_so_does_who_waits_for_that(tmp_path: Path) -> None:
    """It held the frontier for ever, and the memory with it. The reason names the other."""
    rig = waiting(tmp_path)
    assert [rig.done(name) for name in (T, U, V)] == [1, 2, 3]
    assert f"{T} is in quarantine" in reasons(rig)[U]
    assert f"{U} is in quarantine" in reasons(rig)[V]
    assert not rig.heard(msg.PipelineFailed)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("order", list(permutations((T, U, V))))
def test_they_are_released_in_any_order(
    tmp_path: Path, order: tuple[str, ...], restart: bool
) -> None:
    """One that comes too early goes back; in the end all is written, once."""
    rig = waiting(tmp_path)
    if restart:
        rig.start()
    rig.refusing.clear()
    for _ in order:
        for name in order:
            rig.feed(msg.RetryTarget(name))
            rig.settle()
            assert name not in rig.listed or rig.waits[name] in rig.listed
    assert rig.rows == {T: {(1,): "a"}, U: {(1,): "b"}, V: {(1,): "c"}}
    assert rig.listed == {}


def test_it_waits_for_one_that_is_being_released(tmp_path: Path) -> None:
    """That is to write what is waited for."""
    rig = waiting(tmp_path)
    rig.refusing.clear()
    rig.feed(msg.RetryTarget(T))
    rig.feed(msg.RetryTarget(U))
    rig.settle()
    assert (rig.rows[T], rig.rows[U]) == ({(1,): "a"}, {(1,): "b"})
    assert list(rig.listed) == [V]


def test_one_that_is_not_in_quarantine_is_waited_for(tmp_path: Path) -> None:
    """It may take its time: nobody is in the way of anybody."""
    rig = ProcessorRig(tmp_path, quarantine=True)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.waits = {U: T}
    rig.send("u", (2, canal("u", 1, "b")))
    rig.tick()
    request = rig.work.popleft()
    rig.feed(msg.Opened(request.target, TargetState()))
    rig.work.clear()
    name = request.target._replace(table="t")
    rig.feed(msg.Failed(request.target, msg.FailureKind.WAITS, "waits", name))
    assert rig.heard(msg.WaitsFor)
    assert not rig.heard(msg.InQuarantine)
    rig.settle()
    assert rig.rows[U] == {(1,): "b"}


def test_a_refusal_that_stops_the_pipeline_leaves_a_quarantine_of_before(tmp_path: Path) -> None:
    """Who waits for that one is no refused target: it goes there, and nothing stops."""
    waiting(tmp_path)
    rig = ProcessorRig(tmp_path, quarantine=False)
    rig.waits = {"lake.db.w": T}
    rig.send("t", (1, canal("t", 1, "a")))
    rig.send("w", (5, canal("w", 1, "e")))
    rig.settle()
    assert "lake.db.w" in rig.listed
    assert not rig.heard(msg.PipelineFailed)


def test_an_answer_that_is_late_is_passed_over(tmp_path: Path) -> None:
    """The write is under way again, or is another one: it asks for itself."""
    rig = ProcessorRig(tmp_path, quarantine=True)
    rig.send("u", (2, canal("u", 1, "b")))
    rig.write()
    rig.tick()
    (request,) = rig.work
    target = request.batch.target
    other = target._replace(table="t")
    rig.feed(msg.InQuarantine(target, other, request.batch.batch_id))
    rig.feed(msg.Failed(target, msg.FailureKind.WAITS, "waits", other))
    rig.work.clear()
    rig.feed(msg.InQuarantine(target, other, "another batch"))
    assert not reasons(rig)
    rig.feed(msg.InQuarantine(target, other, request.batch.batch_id))
    assert list(reasons(rig)) == [U]


def test_the_one_is_asked_who_has_the_other(tmp_path: Path) -> None:
    """A pipeline has several processors: the name says which."""
    rig = ProcessorRig(tmp_path, quarantine=True, processors=8)
    rig.send("u", (2, canal("u", 1, "b")))
    rig.write()
    rig.tick()
    target = rig.work[0].batch.target
    rig.feed(msg.Failed(target, msg.FailureKind.WAITS, "waits", target._replace(table="t")))
    ((to, asked),) = [(to, m) for to, m in rig.told if isinstance(m, msg.WaitsFor)]
    assert to == Address("p", "processor", shard_of(T, 8)) != ME
    assert asked.reply_to == ME


class Waits:
    """A sink whose write waits for another target."""

    def write(self, batch: StagedBatch) -> TargetState:
        raise WaitsForName("waits until it has its name", batch.target._replace(table="t"))


def test_a_writer_tells_whose_write_comes_first() -> None:
    """Else nobody could be asked."""
    target = TargetName("lake", "db", "u")
    batch = StagedBatch("b", target, Mode.UPSERT, TableSchema((), ()), {})
    writer = WriterEffects({"lake": Waits()}, None)  # type: ignore[arg-type, dict-item]
    failed = writer(fx.Publish(batch))
    assert isinstance(failed, msg.Failed)
    assert (failed.kind, failed.awaits) == (msg.FailureKind.WAITS, TargetName("lake", "db", "t"))

"""A target that a person has paused: nothing is written, nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from actors.contract import messages as msg
from tests.actors.target.processor_rig import S0, ProcessorRig, canal
from tests.actors.target.test_away import T, U, figures, rig_of


def paused(folder: Path) -> ProcessorRig:
    """One message is written, then the target is paused."""
    rig = rig_of(folder)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.feed(msg.PauseTarget(T, True))
    return rig


def test_what_comes_is_spilled_and_counts_as_done(tmp_path: Path) -> None:
    """So it holds the frontier for nobody; other targets are written."""
    rig = paused(tmp_path)
    rig.send("t", (2, canal("t", 1, "b")))
    rig.send("u", (3, canal("u", 1, "x")))
    rig.settle()
    assert (rig.rows[T], rig.rows[U]) == ({(1,): "a"}, {(1,): "x"})
    assert rig.done(T) == 2
    assert rig.listed[T].lanes == {S0: (2, 2)}
    shown = figures(rig).away
    assert shown is not None
    assert shown.reason == "a person has paused it"


def test_resumed_it_has_all_in_order(tmp_path: Path) -> None:
    rig = paused(tmp_path)
    rig.send("t", (2, canal("t", 1, "b")))
    rig.settle()
    rig.feed(msg.PauseTarget(T, False))
    rig.send("t", (3, canal("t", 1, "c")))
    rig.settle()
    assert rig.rows[T] == {(1,): "c"}
    assert T not in rig.listed


def test_a_write_in_flight_lands_and_is_not_repeated(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (2, canal("t", 1, "b")))
    rig.tick()
    rig.feed(msg.PauseTarget(T, True))
    rig.send("t", (3, canal("t", 2, "c")))
    rig.settle()
    assert rig.rows[T] == {(1,): "b"}
    rig.feed(msg.PauseTarget(T, False))
    rig.settle()
    assert rig.rows[T] == {(1,): "b", (2,): "c"}


def test_a_restart_writes_nothing_of_it(tmp_path: Path) -> None:
    """Neither what is spilled nor what comes, until it is resumed."""
    rig = rig_of(tmp_path, paused=frozenset({T}))
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.start()
    rig.send("t", (2, canal("t", 2, "b")))
    rig.settle()
    assert T not in rig.rows
    rig.feed(msg.PauseTarget(T, False))
    rig.settle()
    assert rig.rows[T] == {(1,): "a", (2,): "b"}


@pytest.mark.parametrize("seed", range(30))
def test_paused_and_resumed_at_any_moment_it_ends_equal(tmp_path: Path, seed: int) -> None:
    """While it is written, spilled or catching up, with writes that fail in between."""
    chance, rig, last = random.Random(seed), rig_of(tmp_path), {}
    for offset in range(1, 60):
        act = chance.randrange(6)
        if act == 0:
            rig.feed(msg.PauseTarget(T, chance.random() < 0.5))
        elif act == 1:
            rig.tick()
        elif act == 2 and rig.work:
            rig.write()
        elif act == 3:
            rig.settle()
        key = chance.randrange(4)
        last[(key,)] = str(offset)
        rig.send("t", (offset, canal("t", key, str(offset))))
    rig.feed(msg.PauseTarget(T, False))
    rig.settle()
    rig.settle()
    assert rig.rows[T] == last
    assert T not in rig.listed
    assert rig.done(T) == 59

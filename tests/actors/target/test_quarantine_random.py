"""Refusals, releases, revokes and crashes at random: in the end the target equals its source."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from actors.contract import messages as msg
from actors.contract.effects import LogRange
from actors.contract.messages import OF_SPILL
from actors.contract.raw_messages import SpillState
from actors.target.quarantine_state import Quarantine
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T = "lake.db.t"


class Life:
    """One target's log, read by a processor that is refused, released, revoked and killed."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        offsets, at = [], 0
        for _ in range(40):
            at += rng.randint(1, 3)
            offsets.append(at)
        keys = {offset: rng.randint(1, 6) for offset in offsets}
        self.log = {offset: canal("t", key, str(offset)) for offset, key in keys.items()}
        self.expected = {(key,): str(offset) for offset, key in keys.items()}
        size = rng.choice([150, 600, 4000])
        self.rig = ProcessorRig(folder, quarantine=True, batch_bytes=size, buffer_bytes=size)
        self.rig.log.update(self.log)
        self.read_next = 0
        self.done = -1

    def acknowledge(self) -> None:
        """What the committer would take: the present epoch's alone."""
        for written in self.rig.heard(msg.Written):
            if written.epochs.get(S0) == self.rig.epoch != OF_SPILL:
                self.done = max(self.done, written.through[S0])

    def act(self) -> None:
        rng, rig = self.rng, self.rig
        match rng.randrange(10):
            case 0 | 1 | 2:
                some = [(o, v) for o, v in self.log.items() if o >= self.read_next]
                some = some[: rng.randint(1, 4)]
                if some:
                    rig.send("t", *some)
                    self.read_next = some[-1][0] + 1
            case 3 | 4 | 5 if rig.work:
                rig.write()
            case 6:
                rig.tick(rng.choice([0.01, 1.0]))
            case 7:
                rig.feed(msg.RetryTarget(T))
            case 8 if rng.random() < 0.5:
                rig.refusing.pop(T, None) or rig.refusing.update({T: "no"})
            case 9 if rng.random() < 0.3:
                rig.disk_full = not rig.disk_full
            case 9 if rng.random() < 0.3:
                self.revoke()
            case 9 if rng.random() < 0.5 and rig.work:
                self.fail(rig.work[0])
            case 9 if rng.random() < 0.3:
                rig.start()
                self.read_next = rng.randint(0, self.done + 1)
            case _:
                pass
        self.acknowledge()
        self.read_again()

    def fail(self, request: msg.WriteBatch | msg.OpenTarget) -> None:
        """In a way that passes."""
        kinds = [msg.FailureKind.RETRY, msg.FailureKind.RACED]
        if isinstance(request, msg.WriteBatch):
            kinds += [msg.FailureKind.STRAGGLER] * 2
        self.rig.failing = {T: self.rng.choice(kinds)}
        self.rig.write()
        self.rig.failing.clear()

    def read_again(self) -> None:
        """What the fetcher does when a batch was given up: a hand-over to oneself."""
        asked = [again.epochs[S0] for again in self.rig.heard(msg.Reread)]
        if self.rig.epoch in asked:
            self.revoke()

    def revoke(self) -> None:
        """And given back at once. A write in flight goes on, and its end is heard."""
        self.rig.feed(msg.Forget((S0,), self.rig.epoch))
        self.rig.epoch += 1
        self.read_next = self.done + 1

    def end(self) -> None:
        """The causes are gone: all is read and released."""
        rig = self.rig
        rig.refusing.clear()
        rig.disk_full = False
        rig.settle()
        rest = [(o, v) for o, v in self.log.items() if o >= self.read_next]
        if rest:
            rig.send("t", *rest)
        rig.settle()
        rig.feed(msg.RetryTarget(T))
        rig.settle()
        self.acknowledge()


@pytest.mark.parametrize("seed", range(150))
def test_the_target_equals_its_source_in_the_end(seed: int) -> None:
    """Whatever came in between; and nothing that was not written or spilled counted as done."""
    with TemporaryDirectory() as folder:
        life = Life(Path(folder), random.Random(seed))
        for _ in range(80):
            life.act()
            held = life.rig.states[T].hwms[S0] if T in life.rig.states else -1
            spilled = life.rig.listed[T].lanes[S0][1] if T in life.rig.listed else -1
            assert life.done <= max(held, spilled)
        life.end()
        assert not life.rig.heard(msg.PipelineFailed)
        assert life.rig.rows[T] == life.expected
        assert life.done == max(life.log)
        assert T not in life.rig.listed


def test_what_is_left_of_a_piece_follows_it() -> None:
    """A sink that is away has a long stretch, and the other targets have their turn between."""
    state = Quarantine("why", SpillState(), away=True, rereads=(LogRange(S0, 23, 29),))
    assert state.next_rereads(3) == (LogRange(S0, 23, 25),)
    assert state.left_to_reread == (LogRange(S0, 26, 29),)


def test_a_target_that_is_refused_after_all_has_nothing_left_to_read_again() -> None:
    """Else the last piece would be read again for ever, and no release could begin."""
    state = Quarantine("why", SpillState(), away=True, rereads=(LogRange(S0, 23, 29),))
    state.next_rereads(3)
    state.rereads, state.away = state.left_to_reread, False
    assert state.next_rereads(None) == (LogRange(S0, 26, 29),)
    assert state.left_to_reread == ()

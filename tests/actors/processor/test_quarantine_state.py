"""What a quarantine has read again from the log: in pieces, or all at once."""

from __future__ import annotations

from actors.contract.effects import LogRange
from actors.contract.spills import SpillState
from actors.processor.quarantine_state import Quarantine
from offsets.position import TopicPartition

S = TopicPartition("binlog", 0)


def test_what_is_left_of_a_piece_follows_it() -> None:
    """A sink that is away has a long stretch, and the other targets have their turn between."""
    state = Quarantine("why", SpillState(), away=True, rereads=(LogRange(S, 23, 29),))
    assert state.next_rereads(3) == (LogRange(S, 23, 25),)
    assert state.left_to_reread == (LogRange(S, 26, 29),)


def test_a_target_that_is_refused_after_all_has_nothing_left_to_read_again() -> None:
    """Else the last piece would be read again for ever, and no release could begin."""
    state = Quarantine("why", SpillState(), away=True, rereads=(LogRange(S, 23, 29),))
    state.next_rereads(3)
    state.rereads, state.away = state.left_to_reread, False
    assert state.next_rereads(None) == (LogRange(S, 26, 29),)
    assert state.left_to_reread == ()

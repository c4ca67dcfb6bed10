"""Reading pauses because a person wants it, or because a bound on messages per second does."""

from __future__ import annotations

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.offers import Rate
from actors.runtime.mailbox import Tick
from tests.actors.fetcher.test_rule import LOG, SOURCE, fetcher, message, offers, polled

TICK = Tick()


def kinds(out: list[object]) -> list[str]:
    return [type(effect).__name__ for effect in out if not isinstance(effect, fx.Log)]


def test_a_pause_keeps_the_member_and_reads_nothing() -> None:
    """The answer comes when it is so. What was read before goes its way."""
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message()), 0.0))
    assert kinds(logic.handle(msg.PauseReading(True), 0.0)) == ["Pause", "Reply"]
    assert kinds(logic.handle(msg.Offered(offer.to, offer.batch, taken=True), 0.0)) == []
    assert logic.handle(TICK, 9.0) == [fx.Consume(5000, 0.0), fx.WakeAt(9.25)]
    assert kinds(logic.handle(msg.PauseReading(True), 9.0)) == ["Reply"]
    assert kinds(logic.handle(msg.PauseReading(False), 9.0)) == ["Resume", "WakeAt", "Reply"]
    assert logic.handle(TICK, 9.0) == [fx.Consume(5000, 0.1), fx.WakeAt(9.0)]


def test_a_restart_goes_on_being_paused() -> None:
    """Whatever is assigned: nothing is read for a moment either."""
    logic = fetcher(paused=True)
    assert kinds(logic.handle(TICK, 0.0)) == ["WakeAt"]
    assert kinds(logic.handle(TICK, 9.0)) == ["Pause", "Consume", "WakeAt"]
    out = logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 9.0)
    assert kinds(out)[-1] == "Pause"


def test_room_in_a_mailbox_does_not_end_a_persons_pause() -> None:
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message()), 0.0))
    logic.handle(msg.Offered(offer.to, offer.batch, taken=False), 0.0)
    logic.handle(msg.PauseReading(True), 0.0)
    assert kinds(logic.handle(msg.RoomAvailable(offer.to), 0.0)) == ["Offer"]


def test_nor_does_a_persons_word_read_on_without_room() -> None:
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message()), 0.0))
    logic.handle(msg.Offered(offer.to, offer.batch, taken=False), 0.0)
    logic.handle(msg.PauseReading(True), 0.0)
    assert kinds(logic.handle(msg.PauseReading(False), 0.0)) == ["Reply"]


def test_no_more_is_polled_than_the_bound_allows() -> None:
    """And the next poll comes when there is something to read."""
    logic = fetcher(messages_per_s=2)
    assert logic.handle(TICK, 0.0)[0] == fx.Consume(2, 0.1)
    logic.handle(polled(message(), message()), 0.0)
    assert logic.handle(TICK, 0.0) == [fx.WakeAt(0.5)]
    assert logic.handle(TICK, 0.5)[0] == fx.Consume(1, 0.1)


@pytest.mark.parametrize("every_s", [0.01, 0.3, 1.0])
def test_over_a_minute_it_is_the_bound(every_s: float) -> None:
    """However often one asks, within the second that the bucket holds."""
    rate, now, read = Rate(100.0), 0.0, 0
    while now < 60.0:
        taken = rate.allows(5000, now)
        rate.read(taken)
        read, now = read + taken, now + every_s
    assert read == pytest.approx(6050, abs=60)


def test_without_a_bound_all_may_be_read() -> None:
    assert Rate(None).allows(5000, 0.0) == 5000

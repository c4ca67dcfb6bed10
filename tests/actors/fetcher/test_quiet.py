"""A partition of which nothing comes is quiet only where it is read."""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from offsets.recovery import Watermarks
from tests.actors.fetcher.cuts import P0, ROUTER, answered
from tests.actors.fetcher.test_aligning import (
    CANAL,
    P1,
    P2,
    asked_of,
    batch,
    fetcher,
    offers,
    polled,
)


def three() -> FetcherLogic:
    """At second 1 the first of three partitions is held for a cut."""
    logic = FetcherLogic("p", CANAL, ROUTER, 1, FetcherSettings(cut_every_s=1.0))
    starts = dict.fromkeys((P0, P1, P2), 0)
    logic.handle(msg.Assigned(starts, dict.fromkeys(starts, Watermarks(0, 99))), 0.0)
    answered(logic, polled(batch(P0, 0, 10, 50), batch(P1, 0, 20), batch(P2, 0, 20)), 0.0)
    assert offers(answered(logic, polled(batch(P0, 2, 51)), 1.0)) == []
    return logic


def test_a_partition_is_not_quiet_while_others_are_still_read() -> None:
    """Its messages may wait behind theirs."""
    logic = three()
    for place in range(1, 14):
        answered(logic, polled(batch(P2, place, 20 + place)), 1.0 + place / 2)
    out = answered(logic, polled(batch(P1, 1, 30)), 7.6)
    assert offers(out) == [(P1, 1)]
    answered(logic, polled(batch(P2, 14, 60)), 7.7)
    asked = asked_of(answered(logic, polled(batch(P1, 2, 70)), 7.8))
    assert asked is not None
    assert asked.positions == {P0: 2, P1: 2, P2: 14}


def test_a_partition_is_not_quiet_while_no_broker_answers() -> None:
    """The time begins once it can be read again."""
    logic = fetcher()
    assert offers(answered(logic, polled(batch(P0, 2, 51)), 1.0)) == []
    answered(logic, msg.Polled(state=msg.SourceState(connected=False)), 1.1)
    for second in range(2, 30):
        assert asked_of(answered(logic, msg.Polled(), float(second))) is None
    answered(logic, msg.Polled(state=msg.SourceState(connected=True)), 30.0)
    assert asked_of(answered(logic, msg.Polled(), 33.0)) is None
    assert offers(answered(logic, polled(batch(P1, 1, 30)), 33.1)) == [(P1, 1)]
    asked = asked_of(answered(logic, polled(batch(P1, 2, 60)), 33.2))
    assert asked is not None
    assert asked.positions == {P0: 2, P1: 2}


def test_a_partition_whose_own_broker_is_away_costs_the_cut_alone() -> None:
    """It is not quiet: what is older than the others may come of it. It is named."""
    logic = fetcher()
    assert offers(answered(logic, polled(batch(P0, 2, 51)), 1.0)) == []
    state = msg.SourceState(connected=True, away=frozenset({P1}))
    answered(logic, msg.Polled(state=state), 1.1)
    for second in range(2, 11):
        assert asked_of(answered(logic, msg.Polled(), float(second))) is None
    goes_on = answered(logic, msg.Polled(), 11.5)
    assert offers(goes_on) == [(P0, 2)]
    (said,) = [each for each in goes_on if isinstance(each, fx.Log)]
    assert str(P1) in said.fields["reason"]

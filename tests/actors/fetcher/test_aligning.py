"""Several partitions are brought to one time of the source before they are cut."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.boundaries import OTHERS, UNSEEN
from actors.fetcher.by_time import NO_END_S
from actors.fetcher.cutting import Cutting
from actors.fetcher.reassembly import Reassembly
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats import FORMATS
from changes.model.model import FormatOptions
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.fetcher.cuts import P0, ROUTER, answered, fetched, reading

P1, P2 = TopicPartition("t", 1), TopicPartition("t", 2)
CANAL = FORMATS["canal-json"](FormatOptions())
EPOCHS = {P0: 1, P1: 2}
READ = reading(EPOCHS)


def at(time_ms: int | None) -> bytes:
    """A row of that time."""
    told: dict[str, Any] = {"database": "d", "table": "t", "type": "INSERT", "isDdl": False}
    told |= {"pkNames": ["id"], "mysqlType": {"id": "int"}, "data": [{"id": "1"}], "old": None}
    return json.dumps(told | ({} if time_ms is None else {"es": time_ms})).encode()


def batch(source: TopicPartition, first: int, *times: int | None) -> msg.Fetched:
    return fetched(first, [at(time) for time in times], source)


def aligning() -> Cutting:
    """A cut is due at second 1: one partition has come to 50, the other one to 20."""
    cutting = Cutting("p", CANAL, Reassembly(CANAL, 1 << 20), 1.0)
    for each in (batch(P0, 0, 10, 50), batch(P1, 0, 20)):
        assert cutting.take(each, READ, 0.0) == (each, [])
    return cutting


def asked_of(out: list[Any]) -> msg.CutAsked | None:
    found = [each.message for each in out if isinstance(each, fx.Tell)]
    return next((each for each in found if isinstance(each, msg.CutAsked)), None)


def test_each_partition_is_held_before_its_first_change_that_is_later() -> None:
    """Later than all that was handed out. What stands in one is paused until others have come."""
    cutting = aligning()
    head, out = cutting.take(batch(P0, 2, 50, 51, 40), READ, 1.0)
    assert head is not None
    assert (head.offsets, head.next_offset, out) == ([2], 3, [fx.Pause((P0,))])
    assert cutting.take(batch(P0, 5, 60), READ, 1.1) == (None, [fx.Pause((P0,))])
    assert cutting.holds(P0)
    assert not cutting.holds(P1)
    older = batch(P1, 1, 30, None, 50)
    assert cutting.take(older, READ, 1.2) == (older, [])
    head, out = cutting.take(batch(P1, 4, 70), READ, 1.3)
    asked = asked_of(out)
    assert head is None
    assert asked == msg.CutAsked(EPOCHS, {P0: 3, P1: 4}, "time", 50, None)
    assert cutting.take(batch(P1, 5, 71), READ, 1.4) == (None, [])
    goes_on = cutting.hear(msg.CutOver(asked), 2.0)
    assert goes_on is not None
    assert [(each.source, each.offsets) for each in goes_on.held] == [
        (P0, [3, 4]), (P0, [5]), (P1, [4]), (P1, [5]),
    ]  # fmt: skip
    again = batch(P0, 6, 80)
    assert cutting.take(again, READ, 2.9) == (again, [])


@pytest.mark.parametrize("times", [(), (None, None)])
def test_a_partition_that_tells_no_time_for_long_is_taken_as_it_is(times: tuple[None]) -> None:
    """A quiet one, and one of messages without a time, such as that of transactions' ends."""
    cutting, place = aligning(), 1
    assert cutting.take(batch(P0, 2, 51), READ, 1.0)[0] is None
    now, asked = 1.0, None
    while asked is None:
        now += 0.5
        if times:
            out = cutting.take(batch(P1, place, *times), READ, now)[1]
            place += 2
        else:
            out = cutting.idle(READ, now)
        asked = asked_of(out)
        assert now < 99
    assert now == 1.0 + NO_END_S
    assert asked.positions == {P0: 2, P1: place}


def test_one_that_is_behind_for_too_long_is_named_and_the_others_go_on() -> None:
    """No cut is made; the next one is due when it would have been."""
    cutting = aligning()
    assert cutting.take(batch(P0, 2, 51), READ, 1.0)[0] is None
    for second in range(1, 11):
        each = batch(P1, second, 20 + second)
        assert cutting.take(each, READ, float(second)) == (each, [])
        assert cutting.lapsed(float(second)) is None
    found = cutting.lapsed(11.0)
    assert found is not None
    (held,), (said,) = found
    assert held.offsets == [2]
    reason = f"1 partition did not come to 50, the source's time of {P0} in ms, within 10 s: {P1}"
    assert said == fx.Log("warning", "cut_not_made", {"reason": reason})
    assert cutting.behind == reason
    assert cutting.take(held, READ, 11.0) == (held, [])
    assert not cutting.is_aligning
    assert cutting.idle(READ, 12.0) == []
    assert cutting.is_aligning
    assert asked_of(cutting.idle(READ, 12.0 + NO_END_S)) is not None
    assert cutting.behind is None


def test_where_no_message_tells_a_time_each_is_cut_where_it_is() -> None:
    """As of rows without their source."""
    cutting = Cutting("p", CANAL, Reassembly(CANAL, 1 << 20), 1.0)
    for each in (batch(P0, 0, None), batch(P1, 0, None)):
        cutting.take(each, READ, 0.0)
    cutting.take(batch(P0, 1, None), READ, 1.0)
    asked = asked_of(cutting.take(batch(P1, 1, None, None), READ, 1.0)[1])
    assert asked == msg.CutAsked(EPOCHS, {P0: 2, P1: 3}, "time", 9000, None)


def test_nothing_is_aligned_until_each_partition_has_a_place() -> None:
    """Of one that nothing came of, nobody knows what is applied."""
    cutting = aligning()
    more = reading({**EPOCHS, P2: 3})
    each = batch(P0, 2, 51)
    assert cutting.take(each, more, 1.0) == (each, [])
    assert cutting.uncut == UNSEEN.format(P2)
    found = cutting.lapsed(1.0)
    assert found is not None
    assert [said.event for said in found.said] == ["cuts_not_made"]
    assert cutting.lapsed(1.1) is None
    cutting.begin(P2, 7, 1.0)
    assert cutting.take(batch(P0, 3, 52), more, 1.0)[0] is None
    assert cutting.uncut is None


def fetcher() -> FetcherLogic:
    """Two partitions, which begin with their log."""
    logic = FetcherLogic("p", CANAL, ROUTER, 1, FetcherSettings(cut_every_s=1.0))
    marks = Watermarks(0, 99)
    logic.handle(msg.Assigned({P0: 0, P1: 0}, {P0: marks, P1: marks}), 0.0)
    out = answered(logic, polled(batch(P0, 0, 10, 50), batch(P1, 0, 20)), 0.0)
    assert len(offers(out)) == 2
    return logic


def polled(*batches: msg.Fetched) -> msg.Polled:
    return msg.Polled(batches, {each.source: each.next_offset for each in batches})


def offers(out: list[Any]) -> list[tuple[TopicPartition, int]]:
    """The partition and first offset of what goes on."""
    shares = [e.batch.shares[0] for e in out if isinstance(e, fx.Offer)]
    sources = [e.batch.source for e in out if isinstance(e, fx.Offer)]
    return [(source, each.messages.first) for source, each in zip(sources, shares, strict=True)]


def test_what_was_paused_for_a_cut_flows_again_behind_it() -> None:
    """Also where the cut is given up."""
    for gives_up in (False, True):
        logic = fetcher()
        out = answered(logic, polled(batch(P0, 2, 51)), 1.0)
        assert fx.Pause((P0,)) in out
        assert offers(out) == []
        if gives_up:
            out = answered(logic, polled(batch(P1, 1, 30)), 11.0)
        else:
            asked = asked_of(answered(logic, polled(batch(P1, 1, 60)), 1.1))
            assert asked is not None
            out = answered(logic, msg.CutOver(asked), 1.2)
        assert fx.Resume() in out
        assert (P0, 2) in offers(out)
        assert asked_of(answered(logic, polled(batch(P0, 3, 70)), 1.3)) is None


@pytest.mark.parametrize("rests", [False, True])
def test_a_partition_that_goes_away_amid_a_cut_takes_nothing_of_the_others_along(
    rests: bool,
) -> None:
    """Nor where both stand already: what is held of the other one goes on, once."""
    logic = fetcher()
    answered(logic, polled(batch(P0, 2, 51, 52)), 1.0)
    if rests:
        assert asked_of(answered(logic, polled(batch(P1, 1, 60)), 1.1)) is not None
    answered(logic, msg.Revoked((P1,), False), 1.2)
    out = answered(logic, msg.Polled((), {P0: 4}), 1.3)
    assert offers(out) == [(P0, 2)]
    assert fx.Resume() in out
    out = answered(logic, polled(batch(P0, 4, 53)), 1.4)
    assert offers(out) == [(P0, 4)]


def test_a_partition_that_comes_again_amid_a_cut_begins_anew() -> None:
    """As where it is read again: the cut is given up, and the next one is due in its time."""
    logic = fetcher()
    answered(logic, polled(batch(P0, 2, 51)), 1.0)
    answered(logic, msg.Revoked((P1,), False), 1.1)
    logic.handle(msg.Assigned({P1: 5}, {P1: Watermarks(0, 99)}), 1.1)
    out = answered(logic, msg.Polled((), {P0: 3, P1: 5}), 1.2)
    assert offers(out) == [(P0, 2)]
    nothing = msg.Polled((), {P0: 3, P1: 5})
    assert asked_of(answered(logic, nothing, 2.2 + NO_END_S)) is None
    answered(logic, polled(batch(P1, 5, 52)), 2.3 + NO_END_S)
    answered(logic, nothing, 2.3 + NO_END_S)
    assert asked_of(answered(logic, nothing, 2.4 + 2 * NO_END_S)) is not None


def test_nothing_that_was_handed_out_is_later_than_the_cut() -> None:
    """Commits that ended together may come in another order than that of their times."""
    cutting = Cutting("p", CANAL, Reassembly(CANAL, 1 << 20), 1.0)
    for each in (batch(P0, 0, 55, 50), batch(P1, 0, 20)):
        cutting.take(each, READ, 0.0)
    cutting.take(batch(P0, 2, 56), READ, 1.0)
    head, out = cutting.take(batch(P1, 1, 55, 57), READ, 1.1)
    assert head is not None
    assert head.offsets == [1]
    assert asked_of(out) == msg.CutAsked(EPOCHS, {P0: 2, P1: 2}, "time", 55, None)


def test_a_quiet_partition_is_told_from_a_slow_one_however_short_the_wait_is() -> None:
    """Else no cut would ever be made beside one."""
    cutting = Cutting("p", CANAL, Reassembly(CANAL, 1 << 20), 1.0, 2.0)
    for each in (batch(P0, 0, 10, 50), batch(P1, 0, 20)):
        cutting.take(each, READ, 0.0)
    cutting.take(batch(P0, 2, 51), READ, 1.0)
    assert cutting.lapsed(1.0 + NO_END_S) is None
    assert asked_of(cutting.idle(READ, 1.0 + NO_END_S)) is not None


def test_no_cut_is_made_without_a_partition_that_is_added_meanwhile() -> None:
    """It may have changes of the cut's time already."""
    cutting = aligning()
    cutting.counted({"t": 2})
    assert cutting.take(batch(P0, 2, 51), READ, 1.0)[0] is None
    cutting.counted({"t": 3})
    later = batch(P1, 1, 60)
    assert cutting.take(later, READ, 1.1) == (later, [])
    goes_on = cutting.lapsed(1.1)
    assert goes_on is not None
    assert [each.offsets for each in goes_on.held] == [[2]]
    assert cutting.idle(READ, 2.1 + NO_END_S) == []
    assert cutting.uncut == OTHERS.format(1, 3)


def test_a_pipeline_without_cuts_keeps_nothing_here() -> None:
    """Each partition's last batch would be megabytes."""
    cutting, each = Cutting("p", CANAL, Reassembly(CANAL, 1 << 20), None), batch(P0, 0, 10)
    before = sys.getrefcount(each)
    cutting.begin(P0, 0, 0.0)
    assert cutting.take(each, READ, 0.0)[0] is each
    assert sys.getrefcount(each) == before

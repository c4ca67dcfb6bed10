"""Which writes are one transaction, and what becomes of those that it waits for in vain."""

from __future__ import annotations

from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.writes import StagedBatch
from actors.together import GIVEN_UP, STOPS, Gathering, Together
from changes.model.model import Mode, TableSchema, TargetName
from offsets.position import TopicPartition

P0 = TopicPartition("binlog", 0)
ME, TARGETS = Address("p", "cuts"), Address("p", "processor")


def write(table: str, through: int = 9, sink: str = "pg") -> msg.WriteBatch:
    batch = StagedBatch(
        table, TargetName(sink, "s", table), Mode.UPSERT, TableSchema((), ()), {}, path=table
    )
    return msg.WriteBatch(batch, {P0: 1}, {P0: through}, TARGETS, None, ME)


def awaits(*tables: str, at: int = 9) -> msg.CutAwaits:
    return msg.CutAwaits({name: {P0: at} for name in tables})


def together(*writes: msg.WriteBatch) -> msg.WriteTogether:
    """With half of the patience for locks."""
    return msg.WriteTogether(writes, ME, 2.5)


def told(effects: list[Any], to: Address = WRITERS) -> list[Any]:
    return [each.message for each in effects if isinstance(each, fx.Tell) and each.to == to]


def logged(effects: list[Any]) -> list[Any]:
    return [(each.event, each.fields) for each in effects if isinstance(each, fx.Log)]


def gathering() -> Gathering:
    return Gathering(ME, Together(frozenset({"pg", "my"}), 5.0))


def test_they_are_sent_when_all_are_there() -> None:
    """In whatever order the writes and what is awaited come."""
    one = gathering()
    assert told(one.take(write("b"), 0.0)) == []
    assert told(one.awaits(awaits("pg.s.a", "pg.s.b", "lake.s.c"), 0.1)) == []
    assert told(one.take(write("a"), 0.2)) == [together(write("a"), write("b"))]


def test_each_server_has_its_own_transaction() -> None:
    """One alone needs none."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b", "my.s.c"), 0.0)
    assert told(one.take(write("c", sink="my"), 0.1)) == [write("c", sink="my")]
    one.take(write("a"), 0.2)
    assert told(one.take(write("b"), 0.3)) == [together(write("a"), write("b"))]


def test_a_write_that_does_not_reach_the_boundary_goes_ahead() -> None:
    """More is to come of it, and that comes with the others."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b"), 0.0)
    one.take(write("b"), 0.1)
    ahead = one.take(write("a", through=5), 0.2)
    assert told(ahead) == [write("a", through=5)]
    assert logged(ahead) == [("written_ahead", {"target": "pg.s.a"})]
    assert told(one.take(write("a"), 0.3)) == [together(write("a"), write("b"))]


def test_what_is_waited_for_in_vain_is_named() -> None:
    """The others are written without it."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c"), 0.0)
    one.take(write("b"), 1.0)
    waits = one.take(write("a"), 2.0)
    assert fx.WakeAt(6.0) in waits
    assert one.due(5.9) == [fx.WakeAt(6.0)]
    late = one.due(6.0)
    assert told(late) == [together(write("a"), write("b"))]
    fields = {"targets": ["pg.s.a", "pg.s.b"], "without": ["pg.s.c"]}
    assert logged(late) == [("written_without_others", fields)]
    assert one.due(20.0) == []


def test_the_others_wait_for_one_that_failed() -> None:
    """It alone hears so; what comes of it again is written with them."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b"), 0.0)
    one.take(write("a"), 0.0)
    one.take(write("b"), 0.0)
    failed = msg.Failed(write("a").batch.target, msg.FailureKind.RETRY, "locked")
    writes = write("a"), write("b")
    out = one.not_together(msg.NotTogether(writes, failed, "locked"), 1.0)
    assert told(out, TARGETS) == [failed]
    assert told(out) == []
    assert told(one.take(write("a"), 2.0)) == [together(*writes)]


def test_a_transaction_that_no_single_one_spoils_is_given_up() -> None:
    """Each is written by itself, and hears its own."""
    writes = write("a"), write("b")
    out = gathering().not_together(msg.NotTogether(writes, None, "a foreign key"), 1.0)
    assert told(out) == list(writes)
    assert logged(out)[0][1]["reason"] == "a foreign key"


def test_a_cut_that_is_given_up_gives_the_writes_back() -> None:
    """Their targets then know what became of their partitions."""
    one = gathering()
    one.take(write("a"), 0.0)
    assert told(one.awaits(msg.CutAwaits(None), 1.0), TARGETS) == [back("a", GIVEN_UP)]
    assert one.due(20.0) == []


def back(table: str, why: str) -> msg.Failed:
    """What a target hears of a write that is not written, by nobody's fault."""
    return msg.Failed(write(table).batch.target, msg.FailureKind.RACED, why)


def test_where_the_pipeline_stops_nothing_goes_without_others() -> None:
    """Not what waits, not what fails together, and nothing that comes later."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b"), 0.0)
    one.take(write("a"), 0.1)
    assert told(one.stop(), TARGETS) == [back("a", STOPS)]
    assert told(one.take(write("b"), 0.2), TARGETS) == [back("b", STOPS)]
    failed = msg.Failed(write("a").batch.target, msg.FailureKind.REFUSED, "too long")
    both = write("a"), write("b")
    out = one.not_together(msg.NotTogether(both, failed, "too long"), 0.3)
    assert told(out, TARGETS) == [failed, back("b", STOPS)]
    assert [told(out), one.due(60.0)] == [[], []]


def test_what_the_last_cut_awaited_says_nothing_of_the_next_one() -> None:
    """A write may come before what its cut awaits is known."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b"), 0.0)
    one.over()
    assert told(one.take(write("a", 19), 1.0) + one.take(write("b", 19), 1.0)) == []
    assert told(one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c", at=19), 1.1)) == []
    assert len(told(one.take(write("c", 19), 1.2))) == 1


def test_what_waits_for_partitions_that_went_away_is_given_back() -> None:
    """At once, whether a cut is under way or not: their next owner waits for it. So is what comes
    back from the writers later."""
    one = gathering()
    both = write("a"), write("b")
    one.not_together(msg.NotTogether(both, FAILED, "no connection", away=True), 1.0)
    assert told(one.forget(msg.Forget((P0,), 1)), TARGETS) == [back("b", GIVEN_UP)]
    assert told(one.take(write("a"), 1.5), TARGETS) == [back("a", GIVEN_UP)]
    out = one.not_together(msg.NotTogether(both, FAILED, "no connection", away=True), 2.0)
    assert told(out, TARGETS) == [FAILED, back("b", GIVEN_UP)]
    assert [told(out), told(one.due(60.0))] == [[], []]


def test_what_is_of_other_partitions_goes_on_waiting() -> None:
    """Nothing of it went away."""
    one = gathering()
    one.take(write("a"), 0.0)
    assert told(one.forget(msg.Forget((TopicPartition("binlog", 1),), 1)), TARGETS) == []
    assert told(one.due(5.0)) == [write("a")]


FAILED = msg.Failed(write("a").batch.target, msg.FailureKind.RETRY, "locked")


def test_what_failed_together_goes_together_again_when_its_cut_is_over() -> None:
    """The next one awaits more of each of them: what came before is no reason to tear it."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c"), 0.0)
    writes = write("a"), write("b"), write("c")
    one.over()
    one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c", at=19), 30.0)
    out = one.not_together(msg.NotTogether(writes, FAILED, "locked"), 31.0)
    assert told(out, TARGETS) == [FAILED]
    assert told(out) == []
    assert told(one.take(write("a"), 32.0)) == [together(*writes)]


def test_without_the_one_that_fails_the_others_still_go_as_one() -> None:
    """Also where their cut is over, and where the next one begins meanwhile."""
    one = gathering()
    writes = write("a"), write("b"), write("c")
    assert told(one.not_together(msg.NotTogether(writes, FAILED, "locked"), 1.0)) == []
    assert told(one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c", at=19), 2.0)) == []
    late = one.due(6.0)
    assert told(late) == [together(*writes[1:])]
    fields = {"targets": ["pg.s.b", "pg.s.c"], "without": ["pg.s.a"]}
    assert logged(late) == [("written_without_others", fields)]


def test_all_wait_for_a_server_that_is_away() -> None:
    """None could be written without the one that tries; nor is it waited for for ever."""
    one = gathering()
    writes = write("a"), write("b"), write("c")
    one.not_together(msg.NotTogether(writes, FAILED, "no connection", away=True), 1.0)
    assert told(one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c", at=19), 20.0)) == []
    assert told(one.due(20.0)) == []
    assert told(one.take(write("a"), 30.0)) == [together(*writes)]
    one.not_together(msg.NotTogether(writes, FAILED, "no connection", away=True), 31.0)
    assert told(one.due(31.0 + 35.0)) == [together(*writes[1:])]


def test_the_next_write_has_its_own_patience() -> None:
    """Not what is left of one that has gone ahead."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b"), 0.0)
    one.take(write("a", through=5), 0.1)
    assert one.due(6.0) == []
    assert told(one.take(write("a"), 7.0)) == []


def test_one_that_never_came_again_is_no_group_of_its_own() -> None:
    """It was quarantined, and nothing is awaited of it: what it writes in a later cut waits."""
    one = gathering()
    one.awaits(awaits("pg.s.a", "pg.s.b", "pg.s.c"), 0.0)
    writes = write("a"), write("b"), write("c")
    one.not_together(msg.NotTogether(writes, FAILED, "refused"), 1.0)
    assert told(one.awaits(awaits("pg.s.b", "pg.s.c"), 1.1)) == [together(*writes[1:])]
    one.over()
    one.awaits(awaits("pg.s.a", "pg.s.b", at=19), 9.0)
    assert told(one.take(write("a", 19), 9.1)) == []
    assert len(told(one.take(write("b", 19), 9.2))) == 1


def test_one_that_fails_again_is_waited_for_no_longer() -> None:
    """Its tries are soon at first: each of them would have the others wait again."""
    one = gathering()
    writes = write("a"), write("b")
    one.not_together(msg.NotTogether(writes, FAILED, "locked"), 1.0)
    assert told(one.take(write("a"), 1.5)) == [together(*writes)]
    one.not_together(msg.NotTogether(writes, FAILED, "locked"), 4.0)
    assert told(one.take(write("a"), 5.0)) == [together(*writes)]
    out = one.not_together(msg.NotTogether(writes, FAILED, "locked"), 7.5)
    assert told(out) == [write("b")]

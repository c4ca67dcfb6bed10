"""The fetcher's rule: what it tells, in which order, and what it never skips."""

from __future__ import annotations

import json
from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import Figures
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.mailbox import Tick
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router, shard_of
from offsets.position import TopicPartition
from offsets.recovery import Watermarks

SOURCE = TopicPartition("binlog", 0)
LOG = Watermarks(0, 100)


def message(table: str = "t", kind: str = "INSERT", **more: Any) -> bytes:
    body = {"database": "s", "table": table, "type": kind, "isDdl": False, "data": [{"id": "1"}]}
    return json.dumps(body | more).encode()


def ddl(table: str, sql: str) -> bytes:
    return message(table, "ALTER", isDdl=True, sql=sql, data=None)


def fetcher(shards: int = 2, include: tuple[str, ...] = ("*",), **options: Any) -> FetcherLogic:
    routes = [Route(include, (), "lake.{database}.{table}", Mode.UPSERT, None)]
    settings = FetcherSettings(**options)
    logic = FetcherLogic(
        "p", FORMATS["canal-json"](FormatOptions()), Router(routes), shards, settings
    )
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 0.0)
    return logic


def polled(*values: bytes | None, first: int = 0) -> msg.Polled:
    offsets = list(range(first, first + len(values)))
    return msg.Polled((msg.Fetched(SOURCE, offsets, list(values), first + len(values)),))


def dispatched(out: list[object]) -> list[msg.Dispatched]:
    messages = [e.message for e in out if isinstance(e, fx.Tell)]
    return [m for m in messages if isinstance(m, msg.Dispatched)]


def offers(out: list[object]) -> list[fx.Offer]:
    return [e for e in out if isinstance(e, fx.Offer)]


def failure(out: list[object]) -> str | None:
    for effect in out:
        if isinstance(effect, fx.Tell) and isinstance(effect.message, msg.PipelineFailed):
            return effect.message.reason
    return None


def flushes(out: list[object]) -> list[tuple[Address, int]]:
    told = [e for e in out if isinstance(e, fx.Tell)]
    return [(e.to, e.message.batches) for e in told if isinstance(e.message, msg.Flush)]


def test_at_the_end_of_a_bounded_run_nobody_waits_for_more() -> None:
    """Once what was read has been taken: the processors count it. Others are never told."""
    for until, told in (({SOURCE: 2}, [1]), ({SOURCE: 3}, []), (None, [])):
        logic = fetcher(shards=1, until=until)
        out = logic.handle(polled(message("a"), message("b")), 0.0)
        assert not flushes(out)
        (offer,) = offers(out)
        taken = msg.Offered(offer.to, offer.batch, taken=True)
        assert [count for _, count in flushes(logic.handle(taken, 0.0))] == told
        assert not flushes(logic.handle(polled(message("c"), first=2), 0.0))


def test_dispatched_precedes_the_data() -> None:
    """Or an acknowledgement could overtake its registration, and the frontier pass it."""
    out = fetcher().handle(polled(message("a"), message("b")), 0.0)
    first = next(i for i, e in enumerate(out) if isinstance(e, fx.Offer))
    told = [i for i, e in enumerate(out) if isinstance(e, fx.Tell)]
    assert told
    assert max(told) < first


def test_each_target_gets_its_messages_in_order_as_one_lane() -> None:
    """Interleaved tables are taken apart; offsets keep their order."""
    out = fetcher(shards=1).handle(polled(*(message(t) for t in "abab")), 0.0)
    assert dispatched(out)[0].lanes == {"lake.s.a": (0, 2), "lake.s.b": (1, 3)}
    (offer,) = offers(out)
    assert [share.messages.offsets for share in offer.batch.shares] == [[0, 2], [1, 3]]


def test_a_target_goes_to_the_same_processor_always() -> None:
    """Fixed across restarts and machines: crc32, not ``hash()``."""
    out = fetcher(shards=8).handle(polled(message("orders")), 0.0)
    assert offers(out)[0].to == Address("p", "processor", shard_of("lake.s.orders", 8))
    assert shard_of("lake.s.orders", 8) == 6


def test_what_has_nothing_to_apply_moves_the_position_only() -> None:
    """Heartbeats, commit marks and tables without a route."""
    logic = fetcher(include=("other.*",))
    out = logic.handle(polled(message("a"), message("a", "QUERY")), 0.0)
    assert dispatched(out) == [msg.Dispatched(1, SOURCE, 2, {})]
    assert offers(out) == []


def test_markers_at_the_end_of_the_log_move_the_position() -> None:
    """So lag is zero at the tail of a transactional topic."""
    out = fetcher().handle(msg.Polled((), {SOURCE: 7}), 0.0)
    assert dispatched(out) == [msg.Dispatched(1, SOURCE, 7, {})]


def test_a_ddl_is_a_share_of_its_own_between_the_rows() -> None:
    """A barrier in its lane, and in no other."""
    out = fetcher(shards=1).handle(
        polled(message("a"), message("b"), ddl("a", "ALTER TABLE a ADD c int"), message("a")), 0.0
    )
    shares = [(s.route.name.table, s.messages.offsets, s.ddl) for s in offers(out)[0].batch.shares]
    assert shares == [
        ("a", [0], False), ("a", [2], True), ("b", [1], False), ("a", [3], False)
    ]  # fmt: skip


def test_a_ddl_goes_to_the_table_that_its_sql_names() -> None:
    """The header may name the session's schema while the statement names another."""
    out = fetcher(shards=1).handle(polled(ddl("a", "ALTER TABLE other.x ADD c int")), 0.0)
    assert dispatched(out)[0].lanes == {"lake.other.x": (0, 0)}


def test_a_bad_message_stops_there_and_gives_what_came_before() -> None:
    """The good ones are sent on, the position stays on the bad one."""
    out = fetcher().handle(polled(message("a"), b"garbage", message("a")), 0.0)
    assert dispatched(out)[-1].next_offset == 1
    assert (failure(out) or "").startswith("binlog:0 offset 1: ")


def test_after_a_stop_the_consumers_position_counts_no_more() -> None:
    """It has run ahead of what was dispatched: following it would commit past the bad record."""
    logic = fetcher()
    logic.handle(polled(message("a"), b"garbage", message("a")), 0.0)
    assert logic.handle(msg.Polled((), {SOURCE: 3}), 0.0) == []
    assert logic.handle(polled(message("a"), first=3), 0.0) == []


def blocked() -> tuple[FetcherLogic, fx.Offer]:
    """A fetcher whose only share was refused at second 4."""
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message("a")), 4.0))
    assert logic.handle(msg.Offered(offer.to, offer.batch, False), 4.0) == []
    return logic, offer


def test_a_full_mailbox_parks_the_share_and_nothing_is_polled() -> None:
    """A pause at once would throw away what the client has fetched ahead."""
    logic, _ = blocked()
    assert logic.handle(Tick(), 4.1) == [fx.WakeAt(4.0 + FetcherSettings().patience_s)]


def test_a_mailbox_that_stays_full_pauses_and_polling_goes_on() -> None:
    """So the group keeps this member; nothing blocks."""
    logic, _ = blocked()
    pause, _, poll, wake = logic.handle(Tick(), 5.0)
    assert pause == fx.Pause()
    assert poll == fx.Consume(FetcherSettings().max_messages, 0.0)
    assert wake == fx.WakeAt(5.0 + FetcherSettings().paused_poll_s)
    again = logic.handle(Tick(), 5.5)
    assert fx.Pause() not in again
    assert poll in again


def test_room_again_sends_the_parked_share_and_polls() -> None:
    """The oldest first; when nothing is parked any more, the flow goes on."""
    logic, offer = blocked()
    assert logic.handle(msg.RoomAvailable(offer.to), 4.5) == [offer, fx.WakeAt(0.0)]


def test_room_again_after_a_pause_resumes() -> None:
    """The partitions flow again."""
    logic, offer = blocked()
    logic.handle(Tick(), 5.0)
    out = logic.handle(msg.RoomAvailable(offer.to), 6.0)
    assert out[:2] == [offer, fx.Resume()]
    assert out[-1] == fx.WakeAt(0.0)


def test_what_comes_while_a_share_is_parked_waits_behind_it() -> None:
    """A later batch must never overtake an earlier one of its lane."""
    logic = fetcher(shards=1)
    (first,) = offers(logic.handle(polled(message("a")), 0.0))
    logic.handle(msg.Offered(first.to, first.batch, False), 0.0)
    assert offers(logic.handle(polled(message("a"), first=1), 0.0)) == []
    (again,) = offers(logic.handle(msg.RoomAvailable(first.to), 0.0))
    assert again == first
    (second,) = offers(logic.handle(msg.Offered(first.to, first.batch, True), 0.0))
    assert second.batch.shares[0].messages.offsets == [1]


def test_shares_of_one_poll_are_offered_one_after_another() -> None:
    """A bad message cuts a fetched batch in two: the second part may be small enough for the room
    that the first one does not find, and must not overtake it."""
    logic = fetcher(shards=1, dead_letters=True)
    both = polled(message("a"), b"garbage", message("a"))
    (first,) = offers(logic.handle(both, 0.0))
    assert first.batch.shares[0].messages.offsets == [0]
    assert offers(logic.handle(msg.Offered(first.to, first.batch, False), 0.0)) == []
    assert offers(logic.handle(msg.RoomAvailable(first.to), 0.0)) == [first]
    (second,) = offers(logic.handle(msg.Offered(first.to, first.batch, True), 0.0))
    assert second.batch.shares[0].messages.offsets == [2]


def test_a_revoke_forgets_parked_shares_before_it_releases() -> None:
    """They will be read again by whoever gets the partition."""
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message("a")), 0.0))
    logic.handle(msg.Offered(offer.to, offer.batch, False), 0.0)
    out = logic.handle(msg.Revoked((SOURCE,)), 0.0)
    processors = (Address("p", "processor", 0),)
    assert fx.ReleaseSources((SOURCE,), commit=True, settle=processors) in out
    assert logic.handle(msg.RoomAvailable(offer.to), 0.0) == []


def test_a_lost_partition_is_released_without_a_commit() -> None:
    """Another member may have it already and be ahead."""
    out = fetcher().handle(msg.Revoked((SOURCE,), lost=True), 0.0)
    assert fx.ReleaseSources((SOURCE,), commit=False) in out


def test_a_new_assignment_has_a_new_epoch_and_says_pause_or_resume_again() -> None:
    """A pause survives a rebalance inside librdkafka."""
    logic = fetcher()
    out = logic.handle(msg.Assigned({SOURCE: 5}, {SOURCE: LOG}), 0.0)
    started = [e.message for e in out if isinstance(e, fx.Tell)]
    assert started == [msg.EpochStarted(2, SOURCE, 5, 100, None)]
    assert out[-1] == fx.Resume()


def test_an_assignment_of_several_is_stored_once() -> None:
    """Thousands of topics come at a time: the last of them has the file written."""
    logic, second = fetcher(), TopicPartition("u", 0)
    starts, logs = {SOURCE: 5, second: 0}, {SOURCE: LOG, second: LOG}
    out = logic.handle(msg.Assigned(starts, logs, topic_ids={"u": "id"}), 0.0)
    told = [e.message for e in out if isinstance(e, fx.Tell)]
    started = [message for message in told if isinstance(message, msg.EpochStarted)]
    assert [(each.topic_id, each.more) for each in started] == [(None, True), ("id", False)]


def test_topics_that_went_are_told_once_and_shown() -> None:
    logic, gone = fetcher(), frozenset({"u"})
    for polled_, times in (
        (msg.Polled(gone=gone), 1),
        (msg.Polled(), 0),
        (msg.Polled(gone=gone), 0),
    ):
        said = [e.message for e in logic.handle(polled_, 0.0) if isinstance(e, fx.Tell)]
        assert said.count(msg.TopicsGone(gone)) == times
    (reply,) = logic.handle(Figures(), 0.0)
    assert reply.value.topics_gone == gone


def test_a_stop_tells_the_processors_how_much_was_sent() -> None:
    """Control overtakes data: the count tells when everything has come."""
    logic = fetcher(shards=1)
    (offer,) = offers(logic.handle(polled(message("a")), 0.0))
    out = logic.handle(msg.StopFetching(), 0.0)
    assert fx.Tell(offer.to, msg.Drain(1)) in out
    refused = logic.handle(msg.Offered(offer.to, offer.batch, False), 0.0)
    assert refused == [fx.Tell(offer.to, msg.Drain(0))]


def test_what_came_before_a_failure_is_delivered_first() -> None:
    """Or each restart would come to the same message with no more of it applied."""
    logic, offer = blocked()
    logic.handle(polled(message("b"), b"garbage", first=1), 5.0)
    assert logic.handle(msg.StopFetching(), 5.0) == []
    (again,) = logic.handle(msg.RoomAvailable(offer.to), 6.0)
    assert again == offer
    (behind,) = logic.handle(msg.Offered(offer.to, offer.batch, True), 6.0)
    assert isinstance(behind, fx.Offer)
    assert behind.batch.shares[0].messages.offsets == [1]
    done = logic.handle(msg.Offered(behind.to, behind.batch, True), 7.0)
    assert done == [fx.Tell(offer.to, msg.Drain(2))]
    assert logic.handle(msg.Offered(behind.to, behind.batch, True), 7.0) == []


def test_a_failure_with_nothing_on_its_way_drains_at_once() -> None:
    """A message that can't be read, and nothing before it."""
    logic = fetcher(shards=1)
    out = logic.handle(polled(b"garbage"), 0.0)
    assert fx.Tell(Address("p", "processor", 0), msg.Drain(0)) in out


def test_a_revoke_ends_the_delivery_after_a_failure() -> None:
    """What was parked of the partition is another member's now."""
    logic, offer = blocked()
    logic.handle(polled(b"garbage", first=1), 5.0)
    out = logic.handle(msg.Revoked((SOURCE,)), 6.0)
    assert fx.Tell(offer.to, msg.Drain(0)) in out


def test_only_partitions_that_are_assigned_are_committed() -> None:
    """The file may know more of them than this member has."""
    other = TopicPartition("binlog", 1)
    commit = msg.CommitFrontiers({SOURCE: 4, other: 9}, {SOURCE: 1, other: 1})
    assert fetcher().handle(commit, 0.0) == [fx.Commit({SOURCE: 4}, wait=False)]


def test_a_commit_that_waited_over_a_rebalance_is_stale() -> None:
    """It would move the group back behind what the revoke committed."""
    logic = fetcher()
    logic.handle(msg.Revoked((SOURCE,)), 0.0)
    logic.handle(msg.Assigned({SOURCE: 9}, {SOURCE: LOG}), 0.0)
    assert logic.handle(msg.CommitFrontiers({SOURCE: 4}, {SOURCE: 1}), 0.0) == []


def test_a_ddl_on_a_whole_database_stops_there() -> None:
    """DROP DATABASE has no single lane that could carry it; its tables are routed, so it counts."""
    drop = message("", "QUERY", isDdl=True, sql="DROP DATABASE s", data=None)
    out = fetcher().handle(polled(message("a"), drop), 0.0)
    assert failure(out) == "binlog:0 offset 1: s: DROP DATABASE s is not followed: DROP DATABASE s"


def test_a_statement_about_no_table_that_nobody_understands_is_told() -> None:
    """No target's lane could carry it; reading goes on, unless that is to stop."""
    strange = message("", "QUERY", isDdl=True, sql="FROBNICATE", data=None)
    out = fetcher().handle(polled(message("a"), strange), 0.0)
    logs = [effect for effect in out if isinstance(effect, fx.Log)]
    assert [log.event for log in logs] == ["ddl_not_understood"]
    assert "FROBNICATE" in str(logs[0].fields["what"])
    assert dispatched(out)[0].next_offset == 2
    stopping = fetcher(ddl_not_understood_stops=True)
    stopped = failure(stopping.handle(polled(message("a"), strange), 0.0))
    assert stopped is not None
    assert "FROBNICATE" in stopped


def renamed(table: str, sql: str, kind: str = "RENAME") -> bytes:
    """A statement as Canal writes it, whose header has the database of ``archive``'s table."""
    database = "" if kind == "QUERY" else "archive"
    return message(table, kind, isDdl=True, database=database, sql=sql, data=None)


def test_a_statement_in_a_database_that_is_not_told_stops_where_a_route_may_take_its_table() -> (
    None
):
    """Canal's header has the new name's database: the old name's may be any, ours as well."""
    out = fetcher().handle(polled(renamed("x", "RENAME TABLE a TO archive.x")), 0.0)
    reason = str(failure(out))
    assert reason.startswith("binlog:0 offset 0: a of an unknown database: a statement with names")
    assert reason.endswith("is not followed: RENAME TABLE a TO archive.x")
    elsewhere = fetcher(include=("s.b",))
    out = elsewhere.handle(polled(renamed("x", "RENAME TABLE a TO archive.x")), 0.0)
    assert failure(out) is None


def test_a_statement_without_any_database_is_told() -> None:
    """It vanished: no route takes a table of no database."""
    truncate = renamed("", "TRUNCATE a", "QUERY")
    out = fetcher().handle(polled(truncate), 0.0)
    (log,) = [effect for effect in out if isinstance(effect, fx.Log)]
    assert log.event == "ddl_not_understood"
    assert "TRUNCATE a" in str(log.fields["what"])
    stopping = fetcher(ddl_not_understood_stops=True)
    assert "TRUNCATE a" in str(failure(stopping.handle(polled(truncate), 0.0)))


def test_an_index_in_a_database_that_is_not_told_is_nothing() -> None:
    """Wherever its table is, no row changes."""
    out = fetcher().handle(polled(renamed("", "CREATE INDEX i ON a (b)", "QUERY")), 0.0)
    assert failure(out) is None
    assert [effect for effect in out if isinstance(effect, fx.Log)] == []
    assert dispatched(out)[0].next_offset == 1


def test_a_partition_is_read_again_from_its_frontier() -> None:
    """As if it were revoked and given back, without a word to the group."""
    logic = fetcher(shards=1)
    out = logic.handle(msg.Reread({SOURCE: 1}), 0.0)
    wanted = [
        fx.Tell(Address("p", "processor", 0), msg.Forget((SOURCE,), 1)),
        fx.ReleaseSources((SOURCE,), commit=False),
        fx.Restart((SOURCE,)),
    ]
    assert [effect for effect in out if effect in wanted] == wanted
    assert logic.handle(polled(message("a")), 0.0) == []


def test_a_partition_that_was_given_anew_is_not_read_again() -> None:
    """Its new assignment began at the frontier already."""
    logic = fetcher()
    logic.handle(msg.Revoked((SOURCE,)), 0.0)
    logic.handle(msg.Assigned({SOURCE: 0}, {SOURCE: LOG}), 0.0)
    assert logic.handle(msg.Reread({SOURCE: 1}), 0.0) == []


def test_nothing_is_read_again_after_a_stop() -> None:
    """The drain goes on; the next run begins at the frontier."""
    logic = fetcher()
    logic.handle(msg.StopFetching(), 0.0)
    assert logic.handle(msg.Reread({SOURCE: 1}), 0.0) == []

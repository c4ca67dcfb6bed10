"""When a log has passed a moment of its database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import MappingProxyType

from changes.formats import make_format
from changes.model.model import FormatOptions
from daemon.operations.engine.source_watermarks import LogMoments, Passage, behind, passage, some
from databases.base.errors import DatabaseRefused
from databases.base.log_end import NoEnd, ReaderPosition, WalEnd
from databases.base.port import Moment
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.sources.fake_source import FakeSource

A, B = TopicPartition("shop", 0), TopicPartition("shop", 1)
NOW_MS = 1_700_000_000_000
NOW = Moment(NOW_MS * 1000)


def message(at_ms: int) -> bytes:
    return json.dumps(
        {"database": "shop", "table": "t", "type": "INSERT", "isDdl": False, "es": at_ms,
         "pkNames": ["id"], "mysqlType": {"id": "int"}, "data": [{"id": "1"}], "ts": at_ms + 90_000}
    ).encode()  # fmt: skip


def logs(source: FakeSource, position: ReaderPosition = MappingProxyType({})) -> LogMoments:
    format_ = make_format("canal-json", FormatOptions())
    return LogMoments(format_, source, source, source.logs, lambda: position)


def test_the_first_message_of_after_the_moment_is_the_end() -> None:
    """Later ones change nothing, and neither does when a message was written."""
    source = FakeSource({A: Watermarks(0, 0)})
    source.produce(message(NOW_MS - 5000))
    search = passage(NOW, logs(source).ends())
    assert logs(source).followed(search).waits_for == (A,)
    source.produce(message(NOW_MS - 10), message(NOW_MS + 900), message(NOW_MS + 1001))
    source.produce(message(NOW_MS + 5000))
    found = logs(source).followed(search)
    assert found.ends == {A: 3}
    assert not found.waits_for
    assert not found.assumed


def test_a_search_goes_on_where_it_was() -> None:
    """It is kept as JSON in between."""
    source = FakeSource({A: Watermarks(0, 0)})
    source.produce(message(NOW_MS), message(NOW_MS))
    found = logs(source).followed(passage(NOW, {A: 0}))
    kept = Passage.of(json.loads(json.dumps(found.document())))
    assert kept == found
    assert kept.at == {A: 2}
    source.produce(message(NOW_MS + 2000))
    assert logs(source).followed(kept).ends == {A: 2}


def test_each_partition_has_to_pass_it() -> None:
    """One without a message is waited for, by its name."""
    source = FakeSource({A: Watermarks(0, 0), B: Watermarks(7, 7)})
    source.produce(message(NOW_MS + 2000))
    search = logs(source).followed(passage(NOW, {A: 0, B: 7}))
    assert search.waits_for == (B,)
    assert "22:13:21 UTC in shop:1: an idle source needs a heartbeat" in search.waiting()


def test_an_idle_partition_ends_where_it_is_if_it_may_be_assumed() -> None:
    """That is said, for nothing proves it; a partition with messages is still read to its end."""
    source = FakeSource({A: Watermarks(0, 0), B: Watermarks(7, 7)})
    source.produce(message(NOW_MS))
    search = logs(source).followed(passage(NOW, {A: 0, B: 7}), idle=True)
    assert search.ends == {A: 1, B: 7}
    assert search.assumed


def test_where_the_reader_has_read_all_no_message_is_waited_for() -> None:
    """Not even of the partitions that are idle: it is proved, not assumed."""
    source = FakeSource({A: Watermarks(0, 0), B: Watermarks(7, 7)})
    source.produce(message(NOW_MS))
    search = passage(NOW, {A: 0, B: 7}, WalEnd(70))
    assert logs(source, {"lsn_commit": 69}).followed(search).waits_for == (A, B)
    found = logs(source, {"lsn_commit": 70}).followed(search)
    assert (found.ends, found.assumed) == ({A: 1, B: 7}, False)


def test_a_transaction_that_is_not_over_is_waited_for() -> None:
    """Kafka ends it in one partition, that of the position, before it does in others."""

    class Open(FakeSource):
        def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
            return super().committed_ends(sources) | {B: 6}

    source = Open({A: Watermarks(0, 3), B: Watermarks(0, 7)})
    found = logs(source, {"lsn_commit": 70}).followed(passage(NOW, {A: 3, B: 6}, WalEnd(70)))
    assert (found.ends, found.waits_for) == ({A: 3}, (B,))


def test_the_database_is_asked_where_there_is_a_reader() -> None:
    """What it refuses is no end."""

    def refuses() -> WalEnd:
        raise DatabaseRefused("no right")

    assert logs(FakeSource({}), {"lsn_commit": 1}).log_end(lambda: WalEnd(7)) == WalEnd(7)
    assert isinstance(logs(FakeSource({})).log_end(refuses), NoEnd)
    assert "no right" in str(logs(FakeSource({}), {"lsn_commit": 1}).log_end(refuses))


def test_a_message_that_cant_be_read_proves_nothing() -> None:
    """The search goes on behind it."""
    source = FakeSource({A: Watermarks(0, 0)})
    source.produce(b"{", message(NOW_MS + 2000))
    assert logs(source).followed(passage(NOW, {A: 0})).ends == {A: 1}


def test_where_the_log_ended_a_while_ago() -> None:
    """By the messages' times; where nothing came since, its end."""
    source = FakeSource({A: Watermarks(0, 9), B: Watermarks(7, 8)}, times={A: 4})
    assert logs(source).ended_before(10) == {A: 4, B: 8}


def test_what_a_target_lacks_of_an_end() -> None:
    """A frontier is the first message that is not written yet."""
    assert behind({A: 3, B: 8}, {A: 3, B: 7}) == [B]
    assert behind({A: 3}, {}) == [A]
    assert some([A, B, A, B, A]) == "shop:0, shop:1, shop:0 and 2 others"

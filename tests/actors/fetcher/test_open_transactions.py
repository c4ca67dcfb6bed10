"""Several partitions are held where all transactions that were handed out are whole."""

from __future__ import annotations

from random import Random

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher import open_transactions
from actors.fetcher.by_time import NO_END_S
from actors.fetcher.cutting import Cutting
from actors.fetcher.reassembly import Reassembly
from changes.formats import FORMATS
from changes.model.model import FormatOptions
from offsets.position import TopicPartition
from tests.actors.fetcher.cuts import reading
from tests.actors.fetcher.transactions_log import (
    DATA,
    ENDS,
    T0,
    TransactionsLog,
    begin,
    end,
    event,
)

DEBEZIUM = FORMATS["debezium-json"](FormatOptions())
P0, P1, P2 = DATA
EVERY_S = 1.0


class Reader:
    """Reads a log as the fetcher does, and makes each cut that is asked for at once."""

    def __init__(self, log: TransactionsLog, starts: dict[TopicPartition, int]) -> None:
        self.log, self.now, self.handed_out = log, 0.0, dict(starts)
        self._read = reading(dict.fromkeys(log.values, 1))
        self._polled = dict(starts)
        self.cutting = Cutting("p", DEBEZIUM, Reassembly(DEBEZIUM, 1 << 20), EVERY_S)
        for source, start in starts.items():
            self.cutting.begin(source, start, 0.0)
        self.cuts: list[msg.CutAsked] = []
        self.reasons: list[str] = []

    def poll(self, source: TopicPartition, most: int, until: int | None = None) -> bool:
        """Read on in a partition, if it is not held. Whether anything came."""
        at = self._polled[source]
        values = self.log.values[source][at : at + most if until is None else until]
        if self.cutting.holds(source) or not values:
            return False
        offsets = list(range(at, at + len(values)))
        self._polled[source] = at + len(values)
        self._take(msg.Fetched(source, offsets, list(values), at + len(values)))
        self.settle()
        return True

    def idle(self) -> None:
        """A poll brings nothing."""
        self._asked(self.cutting.idle(self._read, self.now))
        self.settle()

    def settle(self) -> None:
        """What may go on does, and cuts are made."""
        while True:
            if self.cutting.at_rest:
                goes_on = self.cutting.hear(msg.CutOver(self.cuts[-1]), self.now)
            else:
                goes_on = self.cutting.lapsed(self.now)
            if goes_on is None:
                return
            self.reasons += [str(said.fields["reason"]) for said in goes_on.said]
            for fetched in goes_on.held:
                self._take(fetched)

    def _take(self, fetched: msg.Fetched) -> None:
        head, out = self.cutting.take(fetched, self._read, self.now)
        if head is not None:
            assert head.offsets[0] == self.handed_out[head.source], "lost, doubled, or in no order"
            self.handed_out[head.source] = head.offsets[-1] + 1
        self._asked(out)

    def _asked(self, out: list[fx.FetcherEffect]) -> None:
        for effect in out:
            if isinstance(effect, fx.Log):
                self.reasons.append(str(effect.fields["reason"]))
            if isinstance(effect, fx.Tell) and isinstance(effect.message, msg.CutAsked):
                self.cuts.append(effect.message)
                assert effect.message.positions == self.handed_out

    def finish(self) -> None:
        """Read all that is left."""
        for _ in range(2_000):
            self.now += 0.3
            if not sum(self.poll(source, 50) for source in self.log.values):
                self.idle()
            if all(len(v) == self.handed_out[s] for s, v in self.log.values.items()):
                return
        raise AssertionError("what is left is never handed out")

    @property
    def whole(self) -> list[msg.CutAsked]:
        """The cuts that are said to be between two transactions."""
        return [cut for cut in self.cuts if cut.boundary == "transaction"]


def read_through(seed: int) -> Reader:
    """Partitions are read by turns, one ahead of the other, some from amid a transaction; the ends
    are in a partition of their own, or among rows."""
    random = Random(seed)
    log, ends, commit_ms = TransactionsLog(), random.choice((ENDS, ENDS, P1)), T0
    for _ in range(random.randrange(40, 300)):
        commit_ms += random.choice((0, 1, 5, 400))
        log.add(random, commit_ms, ends=ends)
    starts = {s: random.randrange(0, len(v) // 4 + 1) for s, v in log.values.items()}
    reader = Reader(log, starts if seed % 2 else dict.fromkeys(starts, 0))
    pace = {source: random.choice((2, 3, 8, 20)) for source in log.values}
    for _ in range(400):
        reader.now += random.choice((0.01, 0.05, 0.2))
        if not sum(reader.poll(source, random.randrange(1, most)) for source, most in pace.items()):
            reader.idle()
    reader.finish()
    return reader


@pytest.mark.parametrize("seed", range(200))
def test_whatever_comes_first_a_cut_is_between_two_transactions(seed: int) -> None:
    reader = read_through(seed)
    for cut in reader.whole:
        assert (wrong := reader.log.divided(dict(cut.positions))) is None, (wrong, cut)


def test_cuts_by_time_are_not() -> None:
    """The control: statements are older than their commits, so times divide them."""
    readers = [read_through(seed) for seed in range(20)]
    cuts = [(each.log, cut) for each in readers for cut in each.cuts if cut.boundary == "time"]
    divided = [log.divided(dict(cut.positions)) for log, cut in cuts]
    assert len(divided) - divided.count(None) >= 10
    assert sum(len(each.whole) for each in readers) >= 50


def test_cuts_are_made_so_again_and_again() -> None:
    """Of a log that is read as it grows: all but the first, and without waiting for silence."""
    random, log, lengths = Random(7), TransactionsLog(), []
    for number in range(2_000):
        log.add(random, T0 + 50 * number)
        lengths.append({source: len(values) for source, values in log.values.items()})
    reader = Reader(log, dict.fromkeys(log.values, 0))
    for number in range(0, 2_000, 2):
        reader.now += 0.1
        for source in log.values:
            seen = lengths[max(0, number - random.randrange(6))]
            reader.poll(source, 0, seen[source])
    assert [cut.boundary for cut in reader.cuts[:2]] == ["time", "transaction"]
    assert len(reader.whole) >= 20
    assert len(reader.whole) >= len(reader.cuts) - 2, reader.reasons
    assert all(log.divided(dict(cut.positions)) is None for cut in reader.whole)
    last = reader.whole[-1]
    assert last.transaction is not None
    assert last.transaction.startswith("0-1-")


def doubtful(*more: tuple[TopicPartition, bytes], before: int = 60) -> Reader:
    """A log that has been cut so, and then these messages: all that follow, and nothing more."""
    log, random = TransactionsLog(), Random(3)
    for number in range(before):
        log.add(random, T0 + 50 * number)
    reader = Reader(log, dict.fromkeys(log.values, 0))
    while not reader.whole:
        reader.now += 0.1
        if not sum(reader.poll(source, 4) for source in log.values):
            reader.idle()
    reader.finish()
    reader.cuts.clear()
    for source, value in more:
        log.values[source].append(value)
        reader.poll(source, 1)
    return reader


def waited(reader: Reader, seconds: float) -> list[str]:
    """The boundaries of the cuts that are made in that time, while nothing comes."""
    reader.cuts.clear()
    until = reader.now + seconds
    while reader.now < until:
        reader.now += 0.5
        reader.idle()
    return [cut.boundary for cut in reader.cuts]


LATE = T0 + 100_000


def test_what_lacks_an_event_is_waited_for() -> None:
    """And is in the cut once it came; the others stand until then."""
    reader = doubtful((P0, event("a", 1, LATE)), (ENDS, end("a", 2, LATE)))
    assert waited(reader, 4.0) == []
    reader.log.values[P1] += [event("a", 2, LATE), event("b", 1, LATE)]
    assert reader.poll(P1, 2)
    assert [cut.boundary for cut in reader.cuts] == ["transaction"]
    assert reader.cuts[0].positions[P1] == len(reader.log.values[P1]) - 1
    assert reader.cuts[0].transaction == "a"
    assert reader.reasons == []


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (((P0, event("a", 1, LATE)), (ENDS, end("a", 2, LATE))), "not all events came of"),
        (((P0, event("a", 1, LATE)),), "no end came of"),
    ],
)
def test_what_never_comes_is_not_waited_for_long(
    messages: tuple[tuple[TopicPartition, bytes], ...], reason: str
) -> None:
    """The cut is then one by time, and says so; so are the next ones, ever more of them where it
    goes on so."""
    reader = doubtful(*messages)
    assert waited(reader, NO_END_S + 1.5)[:1] == ["time"]
    assert reader.reasons == [f"{reason} transaction a"]
    assert waited(reader, 9.0) == ["time"]
    assert waited(reader, 12.0)[-1:] == ["transaction"]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (((P0, event("a", 3, LATE)), (ENDS, end("a", 1, LATE))), "more events than its end says"),
        (((P0, event("a", 1)), (ENDS, end("a", 1, others=1))), "does not say how many events"),
        (((ENDS, begin("a")), (ENDS, begin("a")), (ENDS, end("a", 0))), "began twice before its"),
        (((P0, event("a", 1)), (P0, event("b", 1)), (ENDS, end("b", 1))), "no end came of transa"),
        (((P0, event(None, 1, LATE)),), "a change in t:0 names no transaction"),
    ],
)
def test_what_can_t_be_counted_is_no_end_of_a_transaction(
    messages: tuple[tuple[TopicPartition, bytes], ...], reason: str
) -> None:
    """Nothing is held for it: the next cut is one by time."""
    reader = doubtful(*messages)
    assert reason in str(reader.cutting._transactions._doubt)  # what would be said of it
    assert waited(reader, NO_END_S + 1.5)[:1] == ["time"]


def test_rows_far_behind_the_ends_are_counted_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory is bounded. From a cut by time on they are counted again."""
    monkeypatch.setattr(open_transactions, "MOST", 10)
    reader = doubtful(*((ENDS, end(f"x{number}", 1, LATE)) for number in range(12)))
    reader.log.values[P0] += [event(f"x{number}", 1, LATE) for number in range(12)]
    reader.finish()
    assert waited(reader, 7.0)[:1] == ["time"]
    for number in range(1, 40):
        reader.log.values[ENDS].append(end(f"y{number}", 1, LATE + number))
        reader.log.values[P0].append(event(f"y{number}", 1, LATE + number))
        reader.finish()
        if "transaction" in waited(reader, 4.0):
            return
    raise AssertionError("they are counted no more")


def test_a_partition_that_goes_away_takes_no_part() -> None:
    """Nothing is known of what another member read of it: counting begins again."""
    reader = doubtful((P0, event("a", 1, LATE)), (ENDS, end("a", 2, LATE)))
    assert waited(reader, 3.0) == []
    reader.cutting.keep({P0, P1, ENDS})
    assert not reader.cutting._transactions.usable  # else a cut would be said to be whole
    assert reader.cutting._transactions.whole  # nothing is waited for


def test_a_restarted_reader_ends_a_finished_transaction_again() -> None:
    """With nothing in it, as Debezium does: it lacks nothing."""
    messages = ((P0, event("a", 1, LATE)), (ENDS, end("a", 1, LATE)), (ENDS, end("a", 0, LATE)))
    reader = doubtful(*messages)
    assert waited(reader, 2.0)[:1] == ["transaction"]

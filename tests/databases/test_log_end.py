"""Which messages are behind the end of a server's log, whatever its transactions look like."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from changes.model.places import Place
from databases.base.log_end import (
    BinlogEnd,
    LogEnd,
    NoEnd,
    ReaderPosition,
    WalEnd,
    by_domain,
    compared,
    file_number,
    highest,
    owned,
)

UUID = "7a0a7964-eb70-11f1-99e5-02fc00000001"
OTHER = "7a0a7964-eb70-11f1-99e5-02fc00000002"


class Written(NamedTuple):
    """A transaction of a server, and the end of the log behind it."""

    place: Place
    end: tuple[str, int]
    number: int


@st.composite
def binlogs(draw: st.DrawFn) -> list[Written]:
    """A server's transactions in the order of its log, over several files."""
    file, pos, number, found = draw(st.integers(999_998, 1_000_000)), 4, 0, []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            file, pos = file + 1, 4
        number += draw(st.integers(1, 3))
        begins = pos + draw(st.integers(0, 300))
        pos = begins + draw(st.integers(1, 2000))
        name = f"bin.{file:06}"
        found.append(Written(Place(f"{UUID}:{number}", name, begins), (name, pos), number))
    return found


@given(binlogs(), st.data())
def test_what_is_behind_the_end_of_a_binary_log(log: list[Written], data: st.DataObject) -> None:
    """Those that came later, and no other; whatever came before them is no reason to doubt it."""
    at = data.draw(st.integers(0, len(log) - 1))
    file, pos = log[at].end
    end = BinlogEnd(UUID, {"": log[at].number}, file, pos)
    assert [end.is_before(one.place) for one in log] == [n > at for n in range(len(log))]
    assert end.unlike([one.place for one in log[: at + 1]]) == ""
    for one in log[at + 1 :]:
        assert "no such transaction" in end.unlike([log[at].place, one.place])


@given(binlogs(), binlogs(), st.data())
def test_a_replica_of_it_proves_nothing_by_its_files(
    log: list[Written], copy: list[Written], data: st.DataObject
) -> None:
    """The transactions are the same, the files are not: what passes is later in both."""
    at = data.draw(st.integers(0, len(log) - 1))
    end = BinlogEnd(UUID, {"": log[at].number}, *log[at].end)
    for mine, its in zip(log, copy, strict=False):
        place = mine.place._replace(file=its.place.file, pos=its.place.pos)
        if end.is_before(place):
            assert mine.number > log[at].number
            assert (file_number(its.place.file or ""), its.place.pos or 0) >= (
                file_number(end.file),
                end.pos,
            )


class Commit(NamedTuple):
    """Of PostgreSQL: its changes are written before it, among those of others."""

    changes: list[int]
    at: int


@st.composite
def wals(draw: st.DrawFn) -> list[Commit]:
    """Transactions in the order of their commits."""
    commits = sorted(draw(st.sets(st.integers(10, 1000), min_size=1, max_size=12)))
    return [
        Commit(sorted(draw(st.sets(st.integers(1, at - 1), min_size=1, max_size=4))), at)
        for at in commits
    ]


@given(wals(), st.integers(1, 1100))
def test_a_change_behind_the_end_of_a_wal_has_all_commits_before_it(
    log: list[Commit], lsn: int
) -> None:
    """In the topic: a transaction's changes at its commit, so their numbers do not grow."""
    topic = [(change, commit.at) for commit in log for change in commit.changes]
    passed = [n for n, (change, _) in enumerate(topic) if WalEnd(lsn).is_before(Place(lsn=change))]
    if passed:
        assert all(commit > lsn for _, commit in topic[passed[0] :])


@given(wals())
def test_a_wal_of_another_server_is_seen_by_what_is_ahead(log: list[Commit]) -> None:
    """What is in the topics already can't be behind the end."""
    places = [Place(lsn=change) for commit in log for change in commit.changes]
    last = max(place.lsn or 0 for place in places)
    assert WalEnd(last).unlike(places) == ""
    assert "another one" in WalEnd(last - 1).unlike(places)


FILE = {"file": "bin.000003", "pos": 400}


@pytest.mark.parametrize(
    ("end", "places", "why"),
    [
        (BinlogEnd(UUID, {"": 9}), [], "no GTID"),
        (BinlogEnd(UUID, {"": 9}), [Place(file="bin.000003", pos=4)], "no GTID"),
        (BinlogEnd(UUID, {"": 9}), [Place(f"{UUID}:1-7")], "no GTID"),  # a set
        (BinlogEnd(UUID, {"": 9}), [Place(f"{UUID}:tag:7")], "no GTID"),
        (BinlogEnd(UUID, {"": 9}), [Place(f"{UUID}:7"), Place(f"{OTHER}:7")], "another server"),
        (BinlogEnd(UUID, {"": 6}), [Place(f"{UUID}:7")], "no such transaction"),
        (BinlogEnd("1", {"0": 9}, **FILE), [Place("0-2-7", "bin.000003", 4)], "another server"),
        (BinlogEnd("1", {"0": 9}, **FILE), [Place("0-1-7", "bin.000003", 400)], "no such"),
        (BinlogEnd("1", {"0": 9}, **FILE), [Place("5-1-7", "bin.000003", 4)], "no such"),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True),
            [Place("0-1-7", "bin.000002", 4)],
            "the server's file bin.000003",
        ),
        (WalEnd(7), [Place(f"{UUID}:7")], "no LSN"),
        (BinlogEnd(UUID, {"": 9}, replicates="it may"), [Place(f"{UUID}:7")], "it may"),
        (NoEnd("a reason"), [Place(lsn=1)], "a reason"),
    ],
)
def test_what_can_t_be_compared_is_no_end(end: LogEnd, places: list[Place], why: str) -> None:
    """With the reason, which is shown."""
    found = compared(end, places, {})
    assert isinstance(found, NoEnd)
    assert why in found.why
    assert not any(map(found.is_before, places))


@pytest.mark.parametrize(
    "place",
    [
        Place(f"{OTHER}:9", "bin.000009", 9),
        Place(f"{UUID}:9"),
        Place(f"{UUID}:9", "bin.000003", 399),
        Place(f"{UUID}:9", "log.000009", 9),
        Place(f"{UUID}:8", "bin.000009", 9),
        Place(None, "bin.000009", 9),
        Place("0-1-9", "bin.000009", 9),
        Place(lsn=10**9),
    ],
)
def test_what_is_not_surely_behind_is_not_behind(place: Place) -> None:
    """Of another server, of another log, without a place, or behind by half of what it says."""
    assert not BinlogEnd(UUID, {"": 8}, **FILE).is_before(place)
    assert BinlogEnd(UUID, {"": 8}, **FILE).is_before(Place(f"{UUID.upper()}:9", "bin.000003", 400))


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=9, unique=True), st.data())
def test_the_highest_own_transaction_is_found_in_sets_as_servers_print_them(
    numbers: list[int], data: st.DataObject
) -> None:
    """Executed ones as spans, owned ones each with its thread; others' and tags among them."""
    at = data.draw(st.integers(0, len(numbers)))
    done, open_ = sorted(numbers[:at]), numbers[at:]
    assume(all(b - a > 1 for a, b in pairwise(done)))
    spans = "".join(f":{one}" for one in done)
    tagged = data.draw(st.sampled_from(["", ":tag:1-3"]))
    executed = f"{OTHER}:1-4000000000,\n{UUID}{spans}{tagged}" if done else f"{OTHER}:1-9"
    text = f"{OTHER}:4000000001#8,\n{UUID}" + "".join(f":{one}#12" for one in open_)
    committing = set(owned(text if open_ else ""))
    assert committing >= {f"{UUID}:{one}" for one in open_}
    expected = max([*numbers, *([3] if tagged and done else [])])
    assert highest(UUID, executed, committing) == expected


def test_what_servers_print() -> None:
    """As MySQL 9 and MariaDB do."""
    assert list(owned("")) == []
    assert list(owned(f"{UUID}:8#10:9#11,{OTHER}:tag:1#12")) == [
        f"{UUID}:8", f"{UUID}:9", f"{OTHER}:tag:1",
    ]  # fmt: skip
    assert highest(UUID, "", ()) == 0
    assert by_domain("0-2-8,5-1-2") == {"0": 8, "5": 2}
    assert by_domain("") == {}


@given(
    st.sampled_from(
        [
            NoEnd("why"),
            WalEnd(7, ("728",)),
            BinlogEnd(UUID, {"": 9}, "bin.000003", 4, (f"{UUID}:8",)),
            BinlogEnd("1", {"0": 9, "5": 2}, "bin.000003", 4, mariadb=True),
        ]
    )
)
def test_a_job_remembers_it(end: LogEnd) -> None:
    """As JSON."""
    assert msgspec.json.decode(msgspec.json.encode(end), type=LogEnd) == end


POSITION = {"file": "bin.000003", "pos": "400", "gtids": f"{UUID}:1-9,{OTHER}:1-4"}


@pytest.mark.parametrize(
    ("end", "position", "of", "read"),
    [
        (BinlogEnd(UUID, {"": 9}, executed=f"{UUID}:1-9,\n{OTHER}:1-4"), POSITION, True, True),
        (BinlogEnd(UUID, {"": 8}, executed=f"{UUID.upper()}:1-8"), POSITION, False, True),
        (BinlogEnd(UUID, {"": 10}, executed=f"{UUID}:1-10,{OTHER}:1-5"), POSITION, True, False),
        # The former primary's transactions count, too: a reader of that has not seen all of them.
        (BinlogEnd(UUID, {"": 0}, executed=f"{OTHER}:1-5"), POSITION, False, False),
        # One that is visible, and that the server has not counted yet.
        (
            BinlogEnd(UUID, {"": 10}, committing=(f"{UUID}:10",), executed=f"{UUID}:1-9"),
            POSITION, False, False,
        ),
        (BinlogEnd(UUID, {"": 9}), POSITION, False, False),
        (BinlogEnd(UUID, {"": 9}, executed=f"{UUID}:1-9"), {}, False, False),
        (BinlogEnd(UUID, {"": 9}, executed=f"{UUID}:1-9"), {"gtids": "0-1-9"}, False, False),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True, executed="0-1-9", replicates="it may"),
            {"gtids": "0-1-9", "file": "bin.000003", "pos": "400"}, True, True,
        ),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True, executed="0-1-9"),
            {"gtids": "0-1-9", "file": "bin.000002", "pos": "900"}, False, True,
        ),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True, executed="0-1-9"),
            {"gtids": "0-1-10", "file": "bin.000003", "pos": "900"}, False, True,
        ),
        (
            # Its next transaction was given the number 7.
            BinlogEnd("1", {"0": 7}, **FILE, mariadb=True, executed="0-1-7"),
            {"gtids": "0-1-9", "file": "bin.000003", "pos": "300"}, False, False,
        ),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True, executed="0-1-9,5-1-2"),
            {"gtids": "0-1-9", "file": "bin.000003", "pos": "400"}, True, False,
        ),
        (
            BinlogEnd("1", {"0": 9}, **FILE, mariadb=True, executed="0-1-9"),
            {"gtids": "0-2-9", "file": "bin.000003", "pos": "400"}, False, False,
        ),
        (WalEnd(7), {"lsn_commit": "7", "lsn": 5}, True, True),
        (WalEnd(7), {"lsn_commit": "6", "lsn": 9}, False, False),
        (WalEnd(7), {"lsn": 7}, True, False),
        (WalEnd(7), {}, False, False),
        (NoEnd("a reason"), POSITION, False, False),
    ],
)  # fmt: skip
def test_a_readers_position_tells_whether_it_has_read_all(
    end: LogEnd, position: ReaderPosition, of: bool, read: bool
) -> None:
    """And whether it reads that very log."""
    assert (end.is_of(position), end.was_read(position)) == (of, read)

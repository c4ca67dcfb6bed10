"""Whatever happens to a log's records and to a topic's counts: it agrees with the truth alone."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.cli.counts.counts_topic import TopicCounts
from daemon.cli.counts.expected import ExpectedCounts
from offsets.position import TopicPartition
from sources.base.port import LogRecord
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog

TABLES = ("shop.t", "shop.u")
OPERATIONS = {"I": "insert", "U": "update", "D": "delete"}
AT = TopicPartition("counts", 0)

Change = tuple[str, str, int]
"""Table, operation, minute of the range; some are before it or behind it."""

CHANGES = st.lists(
    st.tuples(st.sampled_from(TABLES), st.sampled_from("IUD"), st.integers(-2, 4)), max_size=8
)


def written(changes: list[Change], lost: set[int], twice: set[int]) -> DebeziumLog:
    """A log without transactions that lacks some, and has others twice."""
    log = DebeziumLog().at(-5)
    log.row(None, 0)
    for at, (table, op, minute) in enumerate(changes):
        log.at(minute)
        for _ in range((at not in lost) + (at in twice)):
            log.row(None, 0, table=table, op=op)
    log.at(30).row(None, 0)
    return log


def said(changes: list[Change], parts: list[int], order: list[int], closed: bool) -> ExpectedCounts:
    """Each part counts some of the changes and sends a sum again with each; messages come again."""
    sums: Counter[tuple[Change, int]] = Counter()
    messages: list[dict[str, object]] = []
    for at, change in enumerate(changes):
        part = parts[at % len(parts)] if parts else 0
        sums[change, part] += 1
        messages.append({
            "table": change[0], "minute": MINUTE + change[2], "operation": OPERATIONS[change[1]],
            "part": str(part), "n": sums[change, part],
        })  # fmt: skip
        # A sender that heard no answer sends its last message again.
        messages += [messages[-1]] * (order[at % len(order)] if order else 0)
    messages += [{"table": t, "closed": RANGE.stop} for t in TABLES if closed or t != "shop.u"]
    topic = TopicCounts("counts", RANGE)
    for offset, message in enumerate(messages):
        value = json.dumps(message).encode()
        topic.take(AT, LogRecord(offset, None, value, (), (RANGE.stop + 9) * 60_000))
    return topic.expected()


@settings(max_examples=400, deadline=None)
@given(
    CHANGES, st.sets(st.integers(0, 7), max_size=2), st.sets(st.integers(0, 7), max_size=2),
    st.lists(st.integers(0, 2), max_size=3), st.lists(st.integers(0, 2), max_size=3), st.booleans(),
)  # fmt: skip
def test_it_agrees_only_with_what_was_made(
    changes: list[Change],
    lost: set[int],
    twice: set[int],
    parts: list[int],
    order: list[int],
    closed: bool,
) -> None:
    """Fewer differ, more can't be told, and what is not closed never is."""
    log, expected = written(changes, lost, twice), said(changes, parts, order, closed)
    true = Counter(each for each in changes if each[2] in range(len(RANGE)))
    there = Counter({
        change: sum(
            (at not in lost) + (at in twice) for at, each in enumerate(changes) if each == change
        )
        for change in true
    })  # fmt: skip
    for table in TABLES:
        mine = [change for change in true if change[0] == table]
        fewer = any(there[change] < true[change] for change in mine)
        more = any(there[change] > true[change] for change in mine)
        found = log.report(f"lake.{table}", expected=expected)
        if table == "shop.u" and not closed:
            assert found.verdict == "not told"
        else:
            assert found.verdict == ("differs" if fewer else "not told" if more else "agrees")
        if found.verdict == "agrees":
            assert found.expected == sum(true[change] for change in mine)

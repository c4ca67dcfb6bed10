"""How far a replication is, and what is asked for next."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.cli.replicate import board
from daemon.cli.replicate.board import AGAIN_S, ALONE_S, STEADY_S, FollowedTable, Known, Request

SMALL = FollowedTable("shop.small", "lake.shop.small", 100)
MIDDLE = FollowedTable("shop.middle", "lake.shop.middle", 40_000)
LARGE = FollowedTable("shop.large", "lake.shop.large", 1_000_000)
ALL = (LARGE, MIDDLE, SMALL)


def job(state: str, *tables: FollowedTable, done: int = 0, **more: object) -> dict[str, Any]:
    progress = {"done": done, "total": 0, "per_second": 1000.0}
    return {"job": "load-1", "kind": "load", "pipeline": "shop", "state": state, "message": "why",
            "targets": [one.target for one in tables], "progress": progress, "created_ms": 1,
            **more}  # fmt: skip


def test_the_smallest_tables_are_loaded_alone_and_then_the_others() -> None:
    """Beside the reads of a large table each step of a small one would wait for a core."""
    memory = Known()
    first = board.next_request(memory, ALL, (), 0.0)
    assert first == Request("tables load", (SMALL.target, MIDDLE.target))
    board.begun(memory, first, 0.0)
    assert board.next_request(memory, ALL, first.targets, 1.0) is None
    board.learn(memory, [job("done", SMALL, MIDDLE)], 2.0)
    memory.equal[SMALL.target] = 0.0
    second = board.next_request(memory, ALL, (), 2.0)
    assert second == Request("tables load", (LARGE.target,))
    board.begun(memory, second, 2.0)
    third = board.next_request(memory, ALL, {LARGE.target}, 2.0)
    assert third == Request("tables verify", (MIDDLE.target,))


def test_a_first_job_that_waits_holds_up_no_other() -> None:
    """As one that was paused, or whose source is quiet."""
    memory = Known()
    first = board.next_request(memory, ALL, (), 0.0)
    assert first is not None
    board.begun(memory, first, 0.0)
    assert board.next_request(memory, ALL, first.targets, ALONE_S - 1.0) is None
    second = board.next_request(memory, ALL, first.targets, ALONE_S)
    assert second == Request("tables load", (LARGE.target,))
    assert board.next_request(memory, ALL, {one.target for one in ALL}, ALONE_S) is None


def test_one_table_is_compared_before_the_others_are_loaded() -> None:
    """The smallest that has rows: it shows that all of it works. Where it does not, the others wait
    for nothing."""
    empty = FollowedTable("shop.empty", "lake.shop.empty", 0)
    memory = Known(loaded={empty.target, MIDDLE.target, SMALL.target})
    tables = (LARGE, empty, MIDDLE, SMALL)
    first = board.next_request(memory, tables, (), 0.0)
    assert first == Request("tables verify", (SMALL.target,))
    differs = [{"tables": [{"target": SMALL.target, "equal": False, "differing": 1}]}]
    board.compared(memory, differs, 1.0, 0.0)
    second = board.next_request(memory, tables, (), 1.0)
    assert second == Request("tables load", (LARGE.target,))


def test_one_large_table_is_loaded_all_the_same() -> None:
    assert board.next_request(Known(), (LARGE,), (), 0.0) == Request("tables load", (LARGE.target,))


def test_what_is_loaded_is_compared() -> None:
    memory = Known()
    board.learn(memory, [job("done", SMALL)], 5.0)
    busy = {MIDDLE.target, LARGE.target}
    assert board.next_request(memory, ALL, busy, 5.0) == Request("tables verify", (SMALL.target,))
    result = [{"tables": [{"target": SMALL.target, "equal": True, "differing": 0}]}]
    assert board.compared(memory, result, 6.0, 1_800_000_000.0) == [SMALL.target]
    assert board.next_request(memory, ALL, busy, 7.0) is None
    rows = board.rows_of(memory, ALL, busy)
    assert [(row.name, row.state) for row in rows] == [
        ("shop.large", "loads"), ("shop.middle", "loads"), ("shop.small", "equal"),
    ]  # fmt: skip
    assert rows[2].said == "compared at 2027-01-15 08:00:00 UTC"


def test_a_comparison_that_decides_nothing_is_made_again() -> None:
    """So is one that finds a difference, which is shown meanwhile: it may only be late."""
    known = Known(loaded={SMALL.target, MIDDLE.target}, equal={LARGE.target: 0.0})
    tables = [{"target": SMALL.target, "equal": False, "differing": 0},
              {"target": MIDDLE.target, "equal": False, "differing": 3}]  # fmt: skip
    assert board.compared(known, [{"tables": tables}], 10.0, 0.0) == []
    assert board.next_request(known, (SMALL, MIDDLE), (), 10.0) is None
    assert board.rows_of(known, (MIDDLE,), ())[0].state == "differs"
    later = board.next_request(known, (SMALL, MIDDLE), (), 10.0 + AGAIN_S)
    assert later == Request("tables verify", (SMALL.target, MIDDLE.target))
    tables[1] = {"target": MIDDLE.target, "equal": True, "differing": 0}
    assert board.compared(known, [{"tables": tables}], 80.0, 0.0) == [MIDDLE.target]
    assert board.rows_of(known, (MIDDLE,), ())[0].state == "equal"


def test_a_group_that_is_refused_is_asked_for_one_by_one() -> None:
    """One bad table takes no other down; it is tried again, and said why."""
    memory = Known()
    board.refuse(memory, Request("tables load", (SMALL.target, MIDDLE.target)), ["bad"], 0.0)
    first = board.next_request(memory, ALL, (), 0.0)
    assert first == Request("tables load", (SMALL.target,))
    board.refuse(memory, first, ["its sink says no"], 1.0)
    assert board.next_request(memory, ALL, (), 1.0) == Request("tables load", (MIDDLE.target,))
    assert board.rows_of(memory, (SMALL,), ())[0] == ("shop.small", "refused", "its sink says no")
    again = board.next_request(memory, (SMALL,), (), 1.0 + AGAIN_S)
    assert again == Request("tables load", (SMALL.target,))


def test_a_load_that_failed_is_asked_for_again_later() -> None:
    """The last load of a table decides how it stands."""
    memory = Known()
    failed = job("failed", SMALL)
    board.learn(memory, [failed], 0.0)
    assert board.next_request(memory, (SMALL,), (), 1.0) is None
    board.learn(memory, [failed], 30.0)  # the same failure does not put it off
    assert board.next_request(memory, (SMALL,), (), AGAIN_S) is not None
    again = job("failed", SMALL) | {"job": "load-2"}
    board.learn(memory, [failed, again], AGAIN_S)  # another one does, however it is worded
    assert board.next_request(memory, (SMALL,), (), AGAIN_S + 1.0) is None
    board.learn(memory, [failed, again, job("done", SMALL)], AGAIN_S + 2.0)
    assert board.rows_of(memory, (SMALL,), ())[0].state == "loaded"


def test_rows_and_time_left() -> None:
    """Of loads that are done the estimates count."""
    memory = Known(loaded={SMALL.target})
    jobs = [job("done", SMALL), job("running", LARGE, done=500_000)]
    assert board.flow_of(jobs, memory, ALL, 0.0) == (500_100, 1_040_100, 1000.0, 540.0)


def test_no_time_left_is_told_by_the_rate_of_the_first_seconds() -> None:
    """It is far too slow. A next load begins anew."""
    memory, first = Known(loaded={SMALL.target}), job("running", LARGE, done=1_000)
    for now_s, left_s in ((100.0, None), (100.0 + STEADY_S - 1, None), (100.0 + STEADY_S, 1039.0)):
        assert board.flow_of([first], memory, ALL, now_s).left_s == left_s
    waits = job("waiting", LARGE)
    waits["progress"]["per_second"] = None
    assert board.flow_of([waits], memory, ALL, 200.0).per_s is None
    assert board.flow_of([first], memory, ALL, 201.0).left_s is None
    much = job("running", LARGE, done=52_005)
    assert board.flow_of([much], memory, ALL, 202.0).left_s == pytest.approx(988.0, 0.01)

"""A daemon whose pipelines come, go, pause and share, over a log in memory."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.state import control
from settings.counted import counted
from sources import opening
from tests.daemon.flow import Flow, Log, pipeline
from tests.integration.rig import canal

P, Q = pipeline("p", "t", "a"), pipeline("q", "t", "b")


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """One pipeline that runs."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, P)
    made.start()
    yield made
    made.stop()


def test_a_pipeline_comes_goes_and_goes_on_where_it_was(flow: Flow) -> None:
    """Without a restart. What came while it was away is read when it is back, once."""
    flow.insert("t", "b")
    flow.insert("t", "a")
    flow.applied("a", 1)
    flow.write(P + Q)
    lines, refused = flow.reload()
    assert refused == []
    assert all("pipeline.p" not in line for line in lines)
    flow.applied("b", 1)
    flow.write(P)
    assert flow.reload()[1] == []
    assert set(flow.pipelines()) == {"p"}
    flow.insert("t", "b")
    flow.insert("t", "a")
    flow.applied("a", 2)
    assert flow.count("b") == 1
    flow.write(P + Q)
    assert flow.reload()[1] == []
    flow.applied("b", 2)
    assert flow.pipelines()["q"]["messages_read"] == 2


def test_a_pipeline_takes_what_another_one_gives_up(flow: Flow) -> None:
    """Its targets, in one reload: renamed, it reads the log again, and the marks drop it."""
    flow.write(P + Q)
    assert flow.reload()[1] == []
    flow.insert("t", "b", 3)
    flow.applied("b", 3)
    flow.write(P + pipeline("r", "t", "b"))
    assert flow.reload()[1] == []
    flow.insert("t", "b")
    flow.applied("b", 4)
    assert flow.pipelines()["r"]["messages_replayed"] == 3


def test_a_pipeline_that_can_not_begin_leaves_all_as_it_was(flow: Flow) -> None:
    """A folder stands where its positions would be: nobody knew before it was tried."""
    (flow.folder / "state" / "q.offsets.json").mkdir()
    flow.write(P + Q)
    lines, refused = flow.reload()
    assert lines == []
    assert "nothing was changed" in refused[0]
    assert set(flow.pipelines()) == {"p"}
    flow.insert("t", "a")
    flow.applied("a", 1)


def test_a_paused_pipeline_stays_so_over_reloads_and_restarts(flow: Flow) -> None:
    """And then it goes on where it was."""
    flow.insert("t", "a", 300)
    flow.applied("a", 300)
    assert flow.did("pause", name="p", reason="the lake moves").startswith("pipeline p is pau")
    flow.insert("t", "a")
    flow.write(pipeline("p", "t", "[ac]"))
    assert flow.reload()[1] == []
    flow.stop()
    flow.start()
    flow.until(lambda: flow.pipelines()["p"]["assigned"])
    found = flow.pipelines()["p"]
    assert (found["messages_read"], flow.count("a")) == (0, 300)
    assert found["paused_by_a_person"]["reason"] == "the lake moves"
    assert flow.did("resume", name="p") == "pipeline p reads on"
    flow.applied("a", 301)
    assert flow.pipelines()["p"]["paused_by_a_person"] is None
    assert flow.did("resume", name="p") == "pipeline p is not paused"


def test_a_bound_on_messages_is_kept(flow: Flow) -> None:
    """The other pipeline has none, and is done before."""
    begun = time.monotonic()
    flow.write(P + pipeline("q", "t", "b", "quota = {messages_per_s = 100, writers = 1}"))
    assert flow.reload()[1] == []
    flow.insert("t", "a", 200)
    flow.insert("t", "b", 100)
    flow.applied("a", 200)
    read = flow.pipelines()["q"]["messages_read"]
    assert read <= 100 * (1 + time.monotonic() - begun)
    flow.applied("b", 100)
    assert time.monotonic() - begun >= 2


QUARANTINE = 'on_refused_target = "quarantine"'


def quarantined(flow: Flow, name: str) -> Any:
    """What is kept for a pipeline's table b."""
    targets = flow.pipelines()[name]["targets"]
    return next((t["quarantine"] for t in targets if t["target"] == "copy.shop.b"), None)


def refuse(flow: Flow, name: str) -> Any:
    """Have table b of a pipeline refused: a number becomes a text."""
    flow.insert("t", "b")
    flow.applied("b", 1)
    types = {"id": "int(11)", "name": "varchar(9)", "qty": "varchar(9)"}
    row = {"id": 77, "name": "x", "qty": "many"}
    flow.log.produce("t", canal("shop.b", "INSERT", [row], mysqlType=types))
    return flow.until(lambda: (q := quarantined(flow, name)) and q["messages"] and q)


def test_a_target_in_quarantine_stays_there_with_all_that_is_kept(flow: Flow) -> None:
    """Its pipeline starts again with other settings."""
    flow.write(pipeline("p", "t", "[ab]", QUARANTINE))
    assert flow.reload()[1] == []
    kept = refuse(flow, "p")
    flow.write(pipeline("p", "t", "[abc]", f"{QUARANTINE}\nquarantine_bytes = 9000000"))
    assert flow.reload()[1] == []
    flow.insert("t", "c")
    flow.applied("c", 1)
    assert quarantined(flow, "p") == kept


def test_a_pipeline_that_leaves_a_spill_goes_when_it_is_named_and_finds_it_again(
    flow: Flow,
) -> None:
    """Nothing of it is deleted: with the spill gone there would be a hole behind its position."""
    both = P + pipeline("q", "t", "b", QUARANTINE)
    flow.write(both)
    assert flow.reload()[1] == []
    kept = refuse(flow, "q")
    flow.write(P)
    lines, refused = flow.reload()
    assert lines == []
    assert refused == [
        "pipeline q is removed, and of copy.shop.b: it is in quarantine, with "
        f"{counted(kept['messages'], 'message')} kept; --discard q leaves that as it is"
    ]
    assert flow.reload(discard=["q"])[1] == []
    assert set(flow.pipelines()) == {"p"}
    flow.write(both)
    assert flow.reload()[1] == []
    again = flow.until(lambda: quarantined(flow, "q"))
    assert (again["messages"], again["lanes"]) == (kept["messages"], kept["lanes"])


def test_two_reloads_at_once_are_one_or_one_after_the_other(flow: Flow) -> None:
    """The second is refused while the first is under way."""
    flow.write(P + Q)
    begun = flow.ask("operation", name="reload", act=True)
    status, _, refused = flow.do("reload")
    assert (status, refused) in [(0, []), (2, ["a reload is under way already"])]
    flow.until(lambda: flow.ask("operation-state", ticket=begun["ticket"])["status"] is not None)
    assert flow.reload() == ([], [])
    assert set(flow.pipelines()) == {"p", "q"}


def rebuild(flow: Flow, table: str) -> None:
    """Begin to read a table again, as soon as it is recorded that there is one."""
    flow.until(lambda: flow.do("tables rebuild", target=f"copy.shop.{table}")[0] == 0)


def test_a_table_that_is_being_read_again_meanwhile_is_whole(flow: Flow) -> None:
    """The rebuild goes on in the next life of its pipeline, beside another one."""
    flow.insert("t", "a", 500)
    flow.applied("a", 500)
    rebuild(flow, "a")
    flow.write(pipeline("p", "t", "a*") + Q)
    flow.until(lambda: flow.reload()[1] == [])  # refused while the rebuild has it in an edit
    flow.insert("t", "a", 5)
    flow.insert("t", "b", 5)
    flow.until(lambda: [job["state"] for job in flow.ask("jobs")] == ["done"])
    flow.applied("a", 505)
    flow.applied("b", 5)


def test_a_pipeline_with_a_job_does_not_go(flow: Flow) -> None:
    """The job is cancelled first, or ends."""
    flow.write(P + Q)
    assert flow.reload()[1] == []
    flow.insert("t", "b", 5)
    flow.applied("b", 5)
    flow.did("pause", name="q")
    rebuild(flow, "b")
    flow.until(lambda: flow.ask("jobs"))
    (job,) = flow.ask("jobs")
    flow.write(P)
    assert f"the job {job['job']} works on it" in flow.reload()[1][0]
    flow.did("resume", name="q")
    flow.until(lambda: [job["state"] for job in flow.ask("jobs")] == ["done"])
    assert flow.reload()[1] == []


def test_a_group_that_rebalances_meanwhile(flow: Flow) -> None:
    """A pipeline that changes and one that begins, while partitions come and go: each row once."""
    flow.log.rebalances = True
    for number in range(20):
        flow.insert("t", "a", 50)
        flow.insert("t", "b", 5)
        if number == 5:
            flow.write(pipeline("p", "t", "a*", QUARANTINE) + Q)
            assert flow.reload()[1] == []
    flow.log.rebalances = False
    flow.applied("a", 1000)
    flow.applied("b", 100)
    assert {p["stage"] for p in flow.pipelines().values()} == {"running"}


def test_a_paused_target_is_written_no_more_and_then_has_it_all(flow: Flow) -> None:
    """The others go on. Over a reload and a restart; resumed it catches up by itself, in order."""
    flow.write(pipeline("p", "t", "[ab]"))
    assert flow.reload()[1] == []
    flow.insert("t", "a", 300)
    flow.applied("a", 300)
    said = "copy.shop.a is paused: nothing is written, what comes is kept in its spill"
    assert flow.did("pause", name="copy.shop.a", reason="why") == said
    flow.insert("t", "a", 50)
    flow.insert("t", "b", 5)
    flow.applied("b", 5)
    assert flow.phase("copy.shop.a") == "away"
    assert flow.do("tables retry", target="copy.shop.a")[0] == 2
    flow.write(pipeline("p", "t", "[abc]"))
    assert flow.reload()[1] == []
    flow.stop()
    flow.start()
    flow.insert("t", "a", 50)
    flow.insert("t", "c", 5)
    flow.applied("c", 5)
    flow.until(lambda: flow.pipelines()["p"]["partitions"][0]["unapplied_messages"] == 0)
    assert flow.count("a") == 300
    assert flow.ask("status")["paused_targets"]["copy.shop.a"]["reason"] == "why"
    changed = canal("shop.a", "UPDATE", [{"id": 1, "name": "new", "qty": 1}], old=[{"name": "x"}])
    flow.log.produce("t", changed)
    assert flow.did("resume", name="copy.shop.a") == "copy.shop.a is written again"
    flow.applied("a", 400)
    flow.until(lambda: flow.phase("copy.shop.a") == "ready")
    with sqlite3.connect(flow.folder / "copy.db") as file:
        found = file.execute('SELECT name FROM "shop.a" WHERE id = 1').fetchone()
    file.close()
    assert found == ("new",)
    assert flow.ask("status")["paused_targets"] == {}


def test_a_target_that_is_paused_while_it_catches_up_stops_again(flow: Flow) -> None:
    """However often: nothing is lost, nothing comes twice."""
    flow.insert("t", "a", 10)
    flow.applied("a", 10)
    for _ in range(5):
        flow.did("pause", name="copy.shop.a")
        flow.insert("t", "a", 200)
        flow.did("resume", name="copy.shop.a")
    flow.applied("a", 1010)


def test_a_pause_whose_route_is_gone_can_be_taken_back(flow: Flow) -> None:
    """It would be shown for ever."""
    flow.did("pause", name="copy.shop.a")
    flow.write(pipeline("p", "t", "[b]"))
    assert flow.reload()[1] == []
    assert flow.did("resume", name="copy.shop.a").endswith("; no route leads to it")
    assert flow.ask("status")["paused_targets"] == {}


def test_what_can_not_be_paused_is_refused(flow: Flow) -> None:
    """By name: what no route leads to, and what a job works on."""
    with pytest.raises(control.ControlError, match="no target of any route, and no pipeline"):
        flow.did("pause", name="copy.shop.nothing")
    flow.insert("t", "a", 5)
    flow.applied("a", 5)
    flow.did("pause", name="p")
    rebuild(flow, "a")
    flow.until(lambda: flow.ask("jobs"))
    with pytest.raises(control.ControlError, match=r"copy\.shop\.a: the job .* works on it"):
        flow.did("pause", name="copy.shop.a")
    flow.did("resume", name="p")
    flow.until(lambda: [job["state"] for job in flow.ask("jobs")] == ["done"])

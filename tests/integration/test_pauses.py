"""``binlogd pause``, ``resume`` and ``drain`` on a running daemon."""

from __future__ import annotations

import pytest

from tests.integration.rig import canal
from tests.integration.test_reload import Running, running

__all__ = ["running"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_drained_pipeline_stays_paused_over_a_restart_and_a_reload(running: Running) -> None:
    """What was read is written first. Then it goes on where it was."""
    for _ in range(300):
        running.insert("a")
    running.until(lambda: running.count("a"))
    status, shown, said = running.command("drain", "p", "--wait", "--reason", "the lake moves")
    assert (status, said) == (0, "")
    assert shown.splitlines()[-1] == "pipeline p is drained"
    found = running.status()
    before = running.count("a")
    assert [p["unapplied_messages"] for p in found["partitions"]] == [0]
    assert found["paused_by_a_person"]["reason"] == "the lake moves"
    assert "ready, paused" in running.command("tables list")[1]
    running.insert("a")
    running.restart()
    running.write(include="[ab]")
    assert running.reload()[0] == 0
    running.insert("b")
    assert "paused for" in running.command("status")[1]
    found = running.status()
    assert (found["messages_read"], found["assigned"]) == (0, True)
    assert (running.count("a"), running.count("b")) == (before, 0)
    assert running.command("resume", "p") == (0, "pipeline p reads on\n", "")
    running.applied("b", 1)
    running.applied("a", 301)
    assert running.status()["paused_by_a_person"] is None
    assert running.command("resume", "p") == (0, "pipeline p is not paused\n", "")
    assert running.command("pause", "x")[0] == 2


def test_a_paused_target_has_it_all_once_it_is_resumed(running: Running) -> None:
    """Inserts, updates and deletes wait in its spill, over a restart; others are written."""
    running.write(include="[ab]")
    assert running.reload()[0] == 0
    for _ in range(50):
        running.insert("a")
    running.applied("a", 50)
    target = f"copy.{running.rig.db}.a"
    status, shown, said = running.command("pause", target, "--reason", "its disk is full")
    assert (status, said) == (0, "")
    assert shown.startswith(f"{target} is paused")
    table = f"{running.rig.db}.a"
    for number in range(1, 11):
        new = {"id": number, "name": "new", "qty": number}
        running.rig.produce(canal(table, "UPDATE", [new], old=[{"name": "x", "qty": "1"}]))
    running.rig.produce(canal(table, "DELETE", [{"id": 50, "name": "x", "qty": 1}]))
    for _ in range(5):
        running.insert("b")
    running.applied("b", 5)
    running.restart()
    running.insert("a")
    running.insert("b")
    running.applied("b", 6)
    assert target in running.command("tables list")[1]
    assert running.content("a") == [(number, "x", 1) for number in range(1, 51)]
    status, shown, said = running.command("resume", target)
    assert (status, shown, said) == (0, f"{target} is written again\n", "")
    running.applied("a", 50)
    changed = [(number, "new", number) for number in range(1, 11)]
    kept = [(number, "x", 1) for number in [*range(11, 50), 56]]
    running.until(lambda: running.content("a") == [*changed, *kept])
    running.until(lambda: [p["unapplied_messages"] for p in running.status()["partitions"]] == [0])

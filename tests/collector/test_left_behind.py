"""A collector whose section was taken away without ``collector remove``: it is told, by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from collector.collectors import Collectors
from collector.memory import CollectorMemory, left_behind
from daemon.admin.status.collector_health import of_collectors


def test_a_collector_that_was_not_removed_is_told(tmp_path: Path) -> None:
    """With what leads out. One that was removed is forgotten, one with a section is its own."""
    for name in ("old", "gone", "shop"):
        memory = CollectorMemory(tmp_path, name)
        memory.load()
        memory.note(begun="yes", removed="yes" if name == "gone" else "")
    collectors = Collectors([], None, left=partial(left_behind, tmp_path, ["shop"]))
    collectors.prepare()
    (one,) = of_collectors(collectors.figures(), 60.0)
    assert (one.kind, one.level, one.subject) == ("collector_left", "ill", "collector old")
    assert "put [collector.old] back" in one.line
    assert one.command == "binlogd collector remove old"
    assert sorted(path.name for path in (tmp_path / "collectors").iterdir()) == [
        "old.json", "shop.json",
    ]  # fmt: skip


def test_nothing_ran_here(tmp_path: Path) -> None:
    """No folder, no finding, and no folder made."""
    assert left_behind(tmp_path, []) == []
    assert list(tmp_path.iterdir()) == []

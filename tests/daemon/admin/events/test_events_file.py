"""The events' file: a pipe, a full disk; neither holds up anything or takes a line with it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from daemon.admin.events.watch import EventWatch
from daemon.config.sections import EventsSection
from tests.daemon.admin.events.test_watch import ILL, Hook, hook
from tests.daemon.admin.page.documents import quarantined, status

__all__ = ["hook"]


def test_a_file_that_takes_nothing_holds_nothing_up(tmp_path: Path, hook: Hook) -> None:
    """A pipe that nobody reads, or whose reader does not read on: the webhook gets its events."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    section = EventsSection(file=str(pipe), webhook=hook.address)
    shown = [status([quarantined("lake.shop.a", "why")])]
    events = EventWatch(section, "run-1", lambda: shown[0])
    assert events.delivery is not None
    thread = threading.Thread(target=events.look, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    shown[0] = status([quarantined("lake.shop.b", "why" * 100_000)])
    thread = threading.Thread(target=events.look, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    os.close(reader)
    for _ in range(3):
        events.delivery.deliver()
    assert [(e["event"], e["subject"]) for e in hook.got] == [
        ("begun", "lake.shop.a"), ("begun", "lake.shop.b"), ("ended", "lake.shop.a"),
    ]  # fmt: skip


def test_a_line_that_a_full_disk_cut_short_takes_no_other_with_it(tmp_path: Path) -> None:
    """The next one begins a line of its own."""
    path = tmp_path / "e"
    path.write_text('{"event": "beg')
    events = EventWatch(EventsSection(file=str(path)), "run-1", lambda: ILL)
    events.look()
    first, *others = path.read_text().splitlines()
    assert (first, {json.loads(line)["event"] for line in others}) == ('{"event": "beg', {"begun"})

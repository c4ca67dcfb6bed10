"""The main thread's queue: a wait ends now and then, so that signals are heard."""

from __future__ import annotations

import pytest

from daemon.app import supervisor
from daemon.app.supervisor import EventQueue


@pytest.mark.parametrize("asked", [None, 3600.0])
def test_no_wait_is_without_end(asked: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LONGEST_WAIT_S", 0.01)
    assert EventQueue().get(asked) is None


def test_an_event_ends_it() -> None:
    events = EventQueue()
    events.tell("stop")
    assert events.get(None) == "stop"
    assert events.get(0.0) is None

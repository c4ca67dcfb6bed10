"""Libraries' own log lines: events in the log, nothing on standard error."""

from __future__ import annotations

import logging

import structlog

from daemon.logs import _LibraryTalk


def test_a_library_that_complains_is_an_event() -> None:
    """It has no form of its own, and is not lost."""
    record = logging.LogRecord("some.library", logging.WARNING, "f", 1, "no %s", ("room",), None)
    with structlog.testing.capture_logs() as logs:
        _LibraryTalk().emit(record)
    assert logs == [
        {
            "event": "library_said", "log_level": "warning",
            "library": "some.library", "text": "no room",
        }
    ]  # fmt: skip


def test_what_py4j_also_raises_is_for_those_who_look_for_it() -> None:
    """The root logger is where it tells of broken connections, with tracebacks."""
    record = logging.LogRecord("root", logging.ERROR, "f", 1, "broken", (), None)
    with structlog.testing.capture_logs() as logs:
        _LibraryTalk().emit(record)
    assert [entry["log_level"] for entry in logs] == ["debug"]

"""The log: libraries' own lines are events in it, and a full disk is nobody's error."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from pathlib import Path

import pytest
import structlog

from daemon.admin.logs import LogStream, _LibraryTalk, set_up_logs
from daemon.config.log_level import LogLevels
from daemon.config.sections import LogSection


class Disk(io.StringIO):
    """Takes lines unless it is full."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError("no space left on device")
        return super().write(text)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_full_disk_ends_nobody(form: str) -> None:
    """Who logs goes on: it is about to try again whatever else that disk did not take."""
    set_up_logs(LogSection(file="/dev/full", format=form))
    log = structlog.get_logger()
    told = [log.error("stage_failed", reason="no space left on device") for _ in range(3)]
    assert told == [None, None, None]


def test_what_was_lost_is_told_when_there_is_room() -> None:
    """A gap in the log must not look like quiet."""
    disk = Disk()
    stream = LogStream(disk, lambda count: f"{count} lost")
    for full, line in ((False, "a"), (True, "b"), (True, "c"), (False, "d"), (False, "e")):
        disk.full = full
        print(line, file=stream, flush=True)
    assert disk.getvalue() == "a\n\n2 lost\nd\ne\n"


def test_each_event_is_a_line_of_the_file(tmp_path: Path) -> None:
    """Appended to what an earlier run wrote, as soon as it happens."""
    file = tmp_path / "log" / "binlogd.log"
    for event in ("first", "zweite\u00e4"):
        set_up_logs(LogSection(file=str(file), format="json"))
        structlog.get_logger().info(event)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["first", "zweite\u00e4"]


HOSTILE = (
    "orders\n2026-01-01T00:00:00Z [info     ] all_is_well\r\x1b[2J\x07\x9b31m\u2028\u202e\x85\ud800"
)


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_is_made_by_a_name_or_an_error(tmp_path: Path, form: str) -> None:
    """Names of tables and the texts of exceptions are others': none ends a line or reaches a
    terminal as a command, and half a character does not cost the line."""
    file = tmp_path / "binlogd.log"
    set_up_logs(LogSection(file=str(file), format=form))
    log = structlog.get_logger()
    log.info(HOSTILE, target=HOSTILE, several=[HOSTILE], by={HOSTILE: HOSTILE})
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("failed")
    text = file.read_bytes().decode()
    lines = text.removesuffix("\n").split("\n")
    assert [ord(c) for c in text if not (c.isprintable() or c == "\n")] == []
    begins = [line for line in lines if not line.startswith("  ")]
    assert len(begins) == 2
    assert text.count("all_is_well") >= 5
    if form == "text":
        assert "ValueError: orders" in text
        assert lines[2:-1]  # the traceback, in lines of its own


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


LINES = [
    ("info", {"pipeline": "shop", "actor": "fetcher"}),
    ("debug", {"pipeline": "shop", "actor": "fetcher"}),
    ("debug", {"pipeline": "eu", "actor": "fetcher-0"}),
    ("debug", {"pipeline": "shop", "actor": "processor-2"}),
    ("warning", {"actor": "writer-1"}),
]


@pytest.mark.parametrize(
    ("level", "own", "passed"),
    [
        ("info", {}, [0, 4]),
        ("debug", {}, [0, 1, 2, 3, 4]),
        ("error", {}, []),
        ("info", {"shop/fetcher": "debug"}, [0, 1, 4]),
        ("info", {"fetcher": "debug"}, [0, 1, 2, 4]),
        ("info", {"shop/": "debug"}, [0, 1, 3, 4]),
        ("info", {"writer": "error", "shop/fetcher": None}, [0]),
    ],
)
def test_levels_of_all_and_of_single_actors(
    level: str, own: dict[str, str | None], passed: list[int]
) -> None:
    """The closest one counts; they may change while it runs."""
    levels = LogLevels("error")
    levels.set(level)
    for actor, its in own.items():
        levels.set_own(actor, its)
    found = []
    for number, (method, event) in enumerate(LINES):
        with contextlib.suppress(structlog.DropEvent):
            levels(None, method, event)
            found.append(number)
    assert found == passed


def test_which_names_there_are_is_seen_of_the_events() -> None:
    """Also of those that are below the level: what a misspelt actor is told with."""
    levels = LogLevels("error")
    for fields in ({"pipeline": "p", "actor": "processor-1"}, {"actor": "jobs"}, {}):
        with contextlib.suppress(structlog.DropEvent):
            levels(None, "debug", fields)
    assert levels.seen == ["jobs", "p/", "p/processor", "processor"]

"""Configures the log: structlog, one event a line, with pipeline and actor. The JVM has its own."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import structlog

from changes.model.printable import printable_event
from daemon.admin.recent_lines import RecentLines
from daemon.config.log_level import LogLevels
from daemon.config.sections import LogSection
from settings.secrets import Redactor

# The stream of log lines: a file or standard error that may be full, or gone, without harm.


class LogStream:
    """Writes whole lines. Lines that can't be written are counted and reported with the next one.

    For ``structlog.PrintLogger``, which holds a lock for the stream: one thread at a time.
    """

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        """``lost`` makes the line that reports how many are missing."""
        self._stream = stream
        self._lost = lost
        self._line = ""
        self._missing = 0

    def write(self, text: str) -> int:
        """Add a part of a line."""
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Write the line."""
        line, self._line = self._line, ""
        if not line:
            return
        notice = f"\n{self._lost(self._missing)}\n" if self._missing else ""
        try:
            self._stream.write(notice + line)
            self._stream.flush()
        except (OSError, ValueError):  # full, or gone; closed
            self._missing += 1
        else:
            self._missing = 0


def set_up_logs(
    section: LogSection, redactor: Redactor | None = None, recent: RecentLines | None = None
) -> LogLevels:
    """Send the daemon's events to the configured place, without secrets. Raises OSError.

    The levels that are returned may be changed later. ``recent`` keeps the last ones.
    """
    redact = redactor or Redactor()
    stream = _stream(section)
    levels = LogLevels(section.level)
    structlog.configure(
        processors=[
            levels,
            structlog.contextvars.merge_contextvars,
            _drop_empty,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # As plain text: other forms show the frames' variables, settings among them.
            structlog.processors.format_exc_info,
            lambda _, __, event: redact.deep(event),
            recent or RecentLines(),
            *_renderers(section, stream.isatty()),
            lambda _, __, line: redact.text(str(line)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(
            cast(TextIO, LogStream(stream, _lost_as(section.format)))
        ),
        # Not cached: loggers of modules would keep the first configuration for ever.
        cache_logger_on_first_use=False,
    )
    _take_library_logs()
    return levels


def _stream(section: LogSection) -> TextIO:
    if not section.file:
        # The terminal's colours are our own, and `_renderers` sees to the rest.
        return cast(TextIO, getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    Path(section.file).parent.mkdir(parents=True, exist_ok=True)
    # Open as long as the process lives. Nothing is buffered: on a full disk that would be a part of
    # a line in front of another.
    raw = Path(section.file).open("ab", buffering=0)  # noqa: SIM115
    return io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", write_through=True)


def _renderers(section: LogSection, colors: bool) -> list[Any]:
    if section.format == "json":
        return [structlog.processors.JSONRenderer()]
    traceback = structlog.dev.plain_traceback
    return [
        printable_event,
        structlog.dev.ConsoleRenderer(
            colors=colors, sort_keys=False, exception_formatter=traceback
        ),
    ]


def _take_library_logs() -> None:
    # py4j and pykka use the standard library; what matters of theirs comes as exceptions.
    logging.getLogger("py4j").setLevel(logging.ERROR)
    logging.getLogger("pykka").setLevel(logging.CRITICAL + 1)
    root = logging.getLogger()
    if not any(isinstance(handler, _LibraryTalk) for handler in root.handlers):
        root.addHandler(_LibraryTalk(logging.WARNING))


def _lost_as(form: str) -> Callable[[int], str]:
    """The line that reports how many could not be written, in the log's form."""
    if form == "json":
        return lambda count: json.dumps({"lines": count, "event": "log_lost", "level": "warning"})
    return lambda count: f"[warning  ] log_lost lines={count}"


class _LibraryTalk(logging.Handler):
    """Turns libraries' log records into our events. Without a handler they go to standard error.

    py4j logs broken connections with a traceback to the root logger. It raises them, too.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Any thread."""
        log = structlog.get_logger()
        tell = log.debug if record.name == "root" else log.warning
        tell("library_said", library=record.name, text=record.getMessage())


def _drop_empty(_: Any, __: str, event: Any) -> Any:
    """The fields of an actor. A writer belongs to no pipeline, so it has no such field."""
    return {key: value for key, value in event.items() if value is not None}

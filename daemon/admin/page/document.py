"""The documents: the page itself, and one target's. Pure, whatever the status says.

Style and script stand in the document. The policy (``POLICY``) admits these two by their hashes and
nothing else, so that a name that were not escaped could still not run.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

from actors.runtime.periodic import Periodic
from daemon.admin.page.attention import errors_section, matters_section
from daemon.admin.page.format import Html, join, name, tag
from daemon.admin.page.gates import gates_section
from daemon.admin.page.history import INTERVAL_S, History
from daemon.admin.page.hour import events_section, hour_section, letters_section
from daemon.admin.page.jobs import jobs_section
from daemon.admin.page.one_target import target_section
from daemon.admin.page.pipeline_view import pipeline_section
from daemon.admin.page.targets import View, choice, rows_of, target_of, targets_section
from daemon.admin.page.verified import Verified, verified_section
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, Level, headline
from daemon.admin.status.health import of_target, shown
from daemon.admin.status.words import duration
from settings.counted import counted

_HERE = resources.files("daemon.admin.page")
STYLE = (_HERE / "page.css").read_text(encoding="utf-8")
SCRIPT = (_HERE / "page.js").read_text(encoding="utf-8")

RELOAD_S = 5
"""How often the page is read again where no script runs."""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = (
    f"default-src 'none'; img-src data:; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The header Content-Security-Policy of every document."""


def page(
    status: doc.Status, history: History, view: View, verified: Sequence[Verified] = ()
) -> str:
    """The whole page."""
    found = shown(status)
    pipelines = status["pipelines"]
    first = _part(
        _head(status, found),
        hour_section(status, history),
        matters_section(status),
        tag(
            "section",
            *(
                pipeline_section(
                    p,
                    history,
                    [one for one in found if one.pipeline == p["pipeline"]],
                    alone=len(pipelines) == 1,
                )
                for p in pipelines
            ),
            id="pipelines",
        ),
        jobs_section(status["jobs"]),
        gates_section(status["gates"]),
    )
    then = _part(
        targets_section(rows_of(status, history), view),
        verified_section(verified, status["time_ms"]),
        letters_section(status),
        errors_section(history.errors(), status["time_ms"]),
        events_section(history.events(), status["time_ms"]),
        tag("p", tag("a", "Configuration in force", href="/config"), class_="quiet"),
    )
    # What one types into stands between the parts, which the script replaces.
    return _document(state_of(found), None, join(first, choice(view), then))


def state_of(found: Sequence[Condition]) -> PageState:
    """What the title and the icon show."""
    level, line = headline(found)
    return PageState(f"{line} - binlogd" if level else "binlogd", level)


def config_page(text: str) -> str:
    """The configuration that is in force."""
    lines = (part for line in text.splitlines() for part in (line, Html("\n")))
    section = tag("section", tag("h2", "Configuration in force"), tag("pre", *lines), id="config")
    return _document(PageState("Configuration - binlogd"), BACK, _part(section))


BACK = tag("a", "All pipelines and targets", href="/")


def target_page(
    status: doc.Status, history: History, pipeline: str, target: str, log: Sequence[str] = ()
) -> str | None:
    """One target's page; None where there is no such target."""
    for p in status["pipelines"]:
        for t in p["targets"]:
            if (p["pipeline"], t["target"]) == (pipeline, target):
                course = history.course(pipeline, target)
                pause = status["paused_targets"].get(target)
                found = [*of_target(p, t, pause)]
                main = _part(target_section(pipeline, t, course, found, log))
                level = found[0].level if found else None
                return _document(PageState(f"{target} - binlogd", level), BACK, main)
    return None


class PageState(NamedTuple):
    """Of a page's title and icon."""

    title: str
    level: Level | None = None


COLOURS: dict[Level | None, str] = {None: "#1a7f45", "passing": "#b08800", "ill": "#b3261e"}


def icon(level: Level | None) -> str:
    """A disc; where something is ill it has a bar, for those who don't tell red from green."""
    bar = '<path d="M8 3v6M8 11v2" stroke="white" stroke-width="2"/>' if level == "ill" else ""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        f'<circle cx="8" cy="8" r="7" fill="{COLOURS[level]}"/>{bar}</svg>'
    )
    return "data:image/svg+xml," + quote(drawing)


VERDICTS = {None: "verdict well", "passing": "verdict passing", "ill": "verdict ill"}


def _head(status: doc.Status, found: Sequence[Condition]) -> Html:
    level, verdict = headline(found)
    return join(
        tag("p", name(verdict), class_=VERDICTS[level], role="status"),
        tag(
            "p",
            f"binlogd {status['version']}, process {status['pid']}, ",
            f"up {duration(status['uptime_seconds'])}, ",
            _session(status["spark"]),
            class_="quiet",
        ),
        *(
            tag(
                "p",
                name(silent["actor"]),
                f" has not answered for {duration(silent['seconds'])}",
                class_="quiet",
            )
            for silent in status["silent"]
            if not silent["stuck"]
        ),
    )


def _session(session: doc.Session | None) -> str:
    if session is None:
        return "without Spark"
    if session["pid"] is None:
        return f"without Spark's JVM for {duration(session['down_seconds'])}"
    again = session["rebuilt"]
    restarted = f", restarted {counted(again, 'time')}" if again else ""
    return f"Spark's JVM up {duration(session['age_seconds'])}{restarted}"


def _part(*sections: Html | None) -> Html:
    """What the script reads again, and puts in place as a whole."""
    return tag("div", *sections, class_="part")


def _document(state: PageState, bar: Html | None, main: Html) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", state.title),
        tag("link", rel="icon", href=icon(state.level)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("noscript", tag("meta", http_equiv="refresh", content=RELOAD_S)),
        tag("style", Html(STYLE)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", tag("a", "binlogd", href="/")), bar),
        tag("p", id="away", hidden=True),
        tag("main", main),
        tag("script", Html(SCRIPT)),
    )
    return f"<!DOCTYPE html>{tag('html', head, body, lang='en')}"


# Answers requests for the page: one document at a time, shared for a second.

SHARED_S = 1.0
"""How old a document may be. A reader asks every two seconds."""

MOST_SHARED = 32
"""Documents that are kept so long."""

Status = Callable[[], doc.Status]
"""Returns the present status document."""


class Sources(NamedTuple):
    """What the page shows besides the status document. Any thread calls them."""

    config: Callable[[], str] = str
    """The configuration in force, without secrets."""
    verified: Callable[[], Sequence[Verified]] = tuple
    """The last verification of each table."""
    log: Callable[[str], Sequence[str]] = lambda target: ()
    """A target's last lines in the log, the newest first."""


NO_SOURCES = Sources()


class PageDesk:
    """Any thread may ask. A thread of its own takes the samples of the history."""

    def __init__(
        self,
        status: Status,
        clock: Callable[[], float] = time.monotonic,
        sources: Sources = NO_SOURCES,
    ) -> None:
        self._status, self._sources = status, sources
        self._clock = clock
        self._history = History()
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, str], tuple[float, str | None]] = {}
        self._rounds = Periodic("history", self.sample, INTERVAL_S, "web", "sample_not_taken")

    def start(self) -> None:
        """Begin to remember."""
        self._rounds.start()

    def close(self) -> None:
        """Stop."""
        self._rounds.close()

    def document(self, path: str, query: str) -> str | None:
        """The document of an address, None if there is none."""
        if path not in ("/", "/target", "/config"):
            return None
        key = (path, query)
        with self._lock:  # also while it is made: the others find it made
            now = self._clock()
            self._shared = {k: v for k, v in self._shared.items() if now - v[0] < SHARED_S}
            if key not in self._shared:
                if len(self._shared) >= MOST_SHARED:
                    self._shared.clear()
                self._shared[key] = (now, self._make(path, query))
            return self._shared[key][1]

    def sample(self) -> None:
        """Take one sample. On the history's thread."""
        self._history.sample(self._status())

    def _make(self, path: str, query: str) -> str | None:
        sources = self._sources
        if path == "/config":
            return config_page(sources.config())
        status = self._status()
        if path == "/":
            return page(status, self._history, View.of(query), sources.verified())
        pipeline, target = target_of(query)
        return target_page(status, self._history, pipeline, target, sources.log(target))

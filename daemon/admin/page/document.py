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

from actors.runtime.periodic import Periodic
from daemon.admin.page.attention import errors_section, matters_section
from daemon.admin.page.format import Html, join, name, tag
from daemon.admin.page.history import INTERVAL_S, History
from daemon.admin.page.jobs import jobs_section
from daemon.admin.page.one_target import target_section
from daemon.admin.page.pipeline_view import pipeline_picture
from daemon.admin.page.targets import View, choice, rows_of, target_of, targets_section
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, headline
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
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The header Content-Security-Policy of every document."""


def page(status: doc.Status, history: History, view: View) -> str:
    """The whole page."""
    rows = rows_of(status, history)
    found = shown(status)
    head = _head(status, found)
    main = join(
        head,
        *(
            pipeline_picture(p, history, [o for o in found if o.pipeline == p["pipeline"]])
            for p in status["pipelines"]
        ),
        matters_section(status),
        jobs_section(status["jobs"]),
        targets_section(rows, view),
        errors_section(history.errors(), status["time_ms"]),
    )
    return _document("binlogd", choice(view), main)


def target_page(status: doc.Status, history: History, pipeline: str, target: str) -> str | None:
    """One target's page; None where there is no such target."""
    for p in status["pipelines"]:
        for t in p["targets"]:
            if (p["pipeline"], t["target"]) == (pipeline, target):
                course = history.course(pipeline, target)
                pause = status["paused_targets"].get(target)
                main = target_section(pipeline, t, course, [*of_target(p, t, pause)])
                return _document(f"{target} - binlogd", tag("a", "All targets", href="/"), main)
    return None


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
        return f"no JVM for {duration(session['down_seconds'])}"
    return (
        f"JVM up {duration(session['age_seconds'])}, replaced {counted(session['rebuilt'], 'time')}"
    )


def _document(title: str, bar: Html, main: Html) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", title),
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


class PageDesk:
    """Any thread may ask. A thread of its own takes the samples of the history."""

    def __init__(self, status: Status, clock: Callable[[], float] = time.monotonic) -> None:
        self._status = status
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
        if path not in ("/", "/target"):
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
        status = self._status()
        if path == "/":
            return page(status, self._history, View.of(query))
        return target_page(status, self._history, *target_of(query))

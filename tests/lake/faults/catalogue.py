"""What may happen to a request of a write, by name, and which request it is."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable

from tests.lake.proxy import Asked, Break, Fault, Rule, Status

_CONFLICT = json.dumps(
    {"error": {"message": "requirement failed", "type": "CommitFailedException", "code": 409}}
)
_SLOW_DOWN = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    "<Message>Please reduce your request rate.</Message></Error>"
)

FAULTS: dict[str, Fault] = {
    "answer lost": Break.ANSWER_LOST,
    "answer cut": Break.ANSWER_CUT,
    "cut before": Break.BEFORE,
    "500": Status(500),
    "500 after": Status(500, after=True),
    "503": Status(503),
    "503 after": Status(503, after=True),
    "504 after": Status(504, after=True),
    "429 after": Status(429, after=True),
    "409": Status(409, _CONFLICT),
    "409 after": Status(409, _CONFLICT, after=True),
    "403": Status(403),
    "SlowDown": Status(503, _SLOW_DOWN),
}
"""``after``: the server has done it, and the answer says that it has not."""

OF_CATALOGS_ALONE = frozenset({"409", "409 after", "429 after"})
OF_STORES_ALONE = frozenset({"SlowDown"})

_KINDS = {
    r"GET /v1/namespaces/[^/]+/tables/": "table: load",
    r"POST /v1/namespaces/[^/]+/tables/": "table: commit",
    r"POST /v1/namespaces/[^/]+/tables$": "table: stage",
    r"DELETE /v1/namespaces/[^/]+/tables/": "table: drop",
    r"POST /v1/tables/rename": "table: rename",
    r"POST /v1/namespaces/[^/]+/properties": "namespace: note",
    r"POST /v1/namespaces$": "namespace: make",
    r"(GET|HEAD) /v1/namespaces/": "namespace: load",
}


def kind_of(asked: Asked) -> str:
    """What a request is, in two words: of whom, and what of it."""
    path = asked.path.split("?")[0]
    for pattern, kind in _KINDS.items():
        if re.match(pattern, f"{asked.method} {path}"):
            return kind
    if path.startswith("/v1/"):
        return f"catalog: {asked.method} {path}"
    for pattern in ("puffin", "parquet", "metadata.json", "snap-", "-m[0-9]+.avro"):
        if re.search(pattern, path):
            return f"{asked.method}: {pattern.replace('-m[0-9]+.avro', 'manifest')}"
    return f"{asked.method}: others"


def of_catalog(kind: str) -> bool:
    """Whether a kind of request is a catalog's."""
    return kind.startswith(("table", "namespace", "catalog"))


class Late:
    """Holds requests of a kind until they are let go; the test knows when a client gave up."""

    def __init__(self, kind: str, times: int = 1) -> None:
        self.kind, self.times = kind, times
        self._go, self._lock = threading.Event(), threading.Lock()

    def rule(self, asked: Asked) -> Fault | None:
        """The proxy's: called by the request's own thread, which waits here."""
        if kind_of(asked) == self.kind:
            with self._lock:
                self.times -= 1
                mine = self.times >= 0
            if mine:
                self._go.wait(60)
        return None

    def let_go(self) -> None:
        """What is held goes on to the server."""
        self._go.set()


def breaking(kind: str, fault: Fault, times: int) -> Rule:
    """The rule for the first requests of a kind."""
    left, lock = [times], threading.Lock()

    def rule(asked: Asked) -> Fault | None:
        if kind_of(asked) != kind:
            return None
        with lock:
            left[0] -= 1
            return fault if left[0] >= 0 else None

    return rule


def in_turn(*rules: Rule) -> Rule:
    """The first that says something."""

    def rule(asked: Asked) -> Fault | None:
        return next((fault for one in rules if (fault := one(asked)) is not None), None)

    return rule


def after_a(kind: str, then: Callable[[Asked], Fault | None]) -> Rule:
    """A rule that holds once a request of a kind has come."""
    seen = threading.Event()

    def rule(asked: Asked) -> Fault | None:
        if kind_of(asked) == kind:
            seen.set()
            return None
        return then(asked) if seen.is_set() else None

    return rule

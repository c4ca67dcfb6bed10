"""What a condition is: something that is not well, with the command that leads out. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from daemon.admin.status.runbook import DOCS, runbook
from settings.shell import quoted

NEWS_S = {"behind": 0.0, "held": 120.0}
"""Passing conditions that are events, too, and how long each lasts before it is one."""

UNREADY = frozenset(
    {
        "starting", "stopping", "pipeline_failed", "not_running", "unassigned", "log_ends_unknown",
        "jvm_down",
    }
)  # fmt: skip
"""Kinds with which the daemon is not ready."""

Level = Literal["ill", "passing"]


class ConditionKey(NamedTuple):
    """Tells conditions apart. ``pipeline`` is empty where it is of the whole process, ``subject``
    (a target, a sink, a job) where it is of the whole pipeline."""

    kind: str
    pipeline: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """``line`` says what is the matter, ``command`` leads out, empty where nothing is to be done.

    ``targets``: those that one cause concerns. ``seconds``: for how long, None: unknown.
    ``retry_seconds``: until it is tried again by itself, None where it is not, or not known.
    ``runbook``: the link to the page about it, of a document's alone.
    """

    kind: str
    line: str
    level: Level = "ill"
    pipeline: str = ""
    subject: str = ""
    command: str = ""
    seconds: float | None = None
    targets: tuple[str, ...] = ()
    retry_seconds: float | None = None
    runbook: str = ""

    @property
    def key(self) -> ConditionKey:
        """See ``ConditionKey``."""
        return ConditionKey(self.kind, self.pipeline, self.subject)

    @property
    def who(self) -> str:
        """What it is of."""
        return self.subject or (f"pipeline {self.pipeline}" if self.pipeline else "binlogd")

    @property
    def is_news(self) -> bool:
        """Whether an event tells it."""
        lasts_s = NEWS_S.get(self.kind)
        lasting = lasts_s is not None and (self.seconds or 0.0) >= lasts_s
        return self.level == "ill" or lasting

    def document(self, docs: str = DOCS) -> dict[str, Any]:
        """As a member of the status document. ``docs``: where the documentation is."""
        link = runbook(self.kind, docs)
        return asdict(self) | {"targets": list(self.targets), "runbook": link}


def headline(found: Iterable[Condition]) -> tuple[Level | None, str]:
    """The worst level, None where all is well, and a line about it."""
    every = list(found)
    ill = [one for one in every if one.level == "ill"]
    if len(ill) > 1:
        return "ill", f"{len(ill):,} things are not well"
    for one in ill or every:
        return one.level, f"{one.who}: {one.line}"
    return None, "all is well"


NOT_FOLLOWED, BY_POLICY = " is not followed: ", "ddl.lossy_change"
"""Of the reason of a quarantine: that of a statement, and where a policy lets that pass."""


def way_out(target: str, reason: str) -> tuple[str, str]:
    """What leads out of a quarantine: what to do first, and the command."""
    if NOT_FOLLOWED not in reason or BY_POLICY in reason:
        return "", f"binlogd tables retry {quoted(target)}"
    first = (
        "; a retry meets it again, unless [pipeline.NAME.ddl] is changed to let it pass. Else "
        "exclude the table in the configuration, give up what is kept, and take it in again"
    )
    return first, f"binlogd reload --discard {quoted(target)}"

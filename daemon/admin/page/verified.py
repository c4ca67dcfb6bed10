"""The last verification of each table, from the results of jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.status.words import duration, short
from daemon.operations.engine.record import Job, State
from settings.counted import counted
from settings.shell import quoted

MOST = 200
"""Tables that are listed, those that are not equal first."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One table's last verification. ``sample``: the part of it that was compared."""

    target: str
    equal: bool
    said: str
    rows: int
    ended_ms: int
    job: str
    sample: float


def last_verified(jobs: Iterable[Job]) -> list[Verified]:
    """Of each table, the verification that ended last. That of a partition says nothing of the
    other rows, one of targets with each other nothing of the source: they do not count."""
    ended = [
        job
        for job in jobs
        if job.wanted.kind == "verify" and job.state is State.DONE
        if job.wanted.params.get("partition") is None and job.wanted.params.get("between") is None
    ]
    found: dict[str, Verified] = {}
    for job in sorted(ended, key=lambda job: job.ended_ms or 0):
        for one in job.result.get("tables", ()):
            found[one["target"]] = Verified(
                target=one["target"],
                equal=one["equal"],
                said=_said(one["skipped"], one["differing"], len(one["undecided"])),
                rows=one["rows"],
                ended_ms=job.ended_ms or 0,
                job=job.id,
                sample=job.result.get("sample", 1.0),
            )
    return sorted(found.values(), key=lambda one: (one.equal, one.target))


class LastVerified:
    """The same, computed again only where jobs have ended: a page asks each second. Any thread."""

    def __init__(self, jobs: Callable[[], Iterable[Job]]) -> None:
        self._jobs = jobs
        self._made: tuple[frozenset[str], list[Verified]] = (frozenset(), [])

    def __call__(self) -> list[Verified]:
        """By table, from the jobs that have ended."""
        jobs = [job for job in self._jobs() if job.wanted.kind == "verify" and job.state.is_final]
        ids = frozenset(job.id for job in jobs)
        if ids != self._made[0]:
            self._made = ids, last_verified(jobs)
        return self._made[1]


def _said(skipped: str | None, differing: int, undecided: int) -> str:
    if skipped is not None:
        return f"not compared: {skipped}"
    parts = [f"{counted(differing, 'row differs', 'rows differ')}"] if differing else []
    parts += [f"{counted(undecided, 'row')} undecided"] if undecided else []
    return ", ".join(parts) or "equal"


def verified_section(found: Sequence[Verified], now_ms: int) -> Html | None:
    """What differs first; None without a verification."""
    if not found:
        return None
    head = ("table", "result", "rows", "compared", "when", "command")
    rows = [
        tag(
            "tr",
            tag("td", name(one.target)),
            tag("td", name(one.said)),
            tag("td", short(one.rows), class_="n"),
            tag("td", "all" if one.sample >= 1 else f"{one.sample:.0%}", class_="n"),
            tag("td", f"{duration(max(0, now_ms - one.ended_ms) / 1000)} ago", class_="n"),
            tag("td", None if one.equal else code(f"binlogd jobs show {quoted(one.job)}")),
            class_=None if one.equal else "ill",
        )
        for one in found[:MOST]
    ]
    differ = sum(not one.equal for one in found)
    title = f"{counted(len(found), 'table')}, not equal: {differ:,}"
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", each, scope="col") for each in head))),
        tag("tbody", *rows),
    )
    return tag(
        "section",
        tag("h2", "Last verification ", tag("small", title)),
        tag("div", table, class_="wide"),
        id="verified",
    )

"""The jobs with their progress and what is left of their time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.admin.page.format import Html, code, name, tag
from daemon.admin.status.words import duration, short
from daemon.operations.figures import JobFigures
from settings.shell import quoted, quoted_pattern

ENDED = ("cancelled", "done")


def jobs_section(jobs: Sequence[JobFigures]) -> Html | None:
    """The jobs that have not ended, and those that failed; None without one."""
    listed = [job for job in jobs if job["state"] not in ENDED]
    if not listed:
        return None
    head = ("job", "targets", "state", "progress", "rate", "time left", "", "command")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *map(_row, listed)),
    )
    return tag("section", tag("h2", "Jobs"), tag("div", table, class_="wide"), id="jobs")


def _command(job: JobFigures) -> str:
    if job["state"] == "refused":  # it is not recorded
        return f"binlogd tables load {quoted_pattern(job['targets'][0])}"
    return f"binlogd jobs show {quoted(job['job'])}"


def _row(job: JobFigures) -> Html:
    progress = job["progress"]
    ratio, rate = progress["ratio"], progress["per_second"]
    done = f"{short(progress['done'])} {progress['unit']}"
    if progress["total"] is not None:
        done = f"{short(progress['done'])} of {short(progress['total'])} {progress['unit']}"
    return tag(
        "tr",
        tag("td", name(job["job"])),
        tag("td", name(", ".join(job["targets"]) or job["pipeline"])),
        tag("td", job["state"] + (f", {job['asked']} requested" if job["asked"] else "")),
        tag("td", _bar(ratio), done),
        tag("td", "-" if rate is None else f"{short(rate)}/s", class_="n"),
        tag("td", duration(progress["eta_seconds"]), class_="n"),
        tag("td", name(job["message"] or ""), class_="why"),
        tag("td", code(_command(job))),
        class_="ill" if job["state"] in ("failed", "refused") else None,
    )


def _bar(ratio: float | None) -> Html | None:
    if ratio is None:
        return None
    return tag("progress", f"{ratio:.0%}", value=f"{ratio:.4f}", max="1")

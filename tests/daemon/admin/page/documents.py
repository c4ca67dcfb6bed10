"""Status documents of made-up daemons, by the code that makes the real ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from actors.contract.addresses import Address
from actors.contract.figures import (
    CommitterFigures,
    CutFigures,
    DeadLetterFigures,
    ErrorFigures,
    FetcherFigures,
    LaneFigures,
    PartitionFigures,
    ProcessorFigures,
    QuarantineFigures,
    TargetFigures,
    WriteFigures,
)
from actors.contract.of_counts import SideFigures
from daemon.admin.status.conditions import UNREADY
from daemon.admin.status.health import conditions
from daemon.admin.status.observer import SUPERVISOR, Answers
from daemon.admin.status.status import About, LifeFigures, document
from daemon.operations.engine.record import Job, JobProgress, JobRequest, State
from daemon.operations.figures import figures_of
from offsets.position import TopicPartition
from sources.base.log_figures import LogFigures
from sparkwriter.session.keeper import SessionFigures

NOW_MS = 1_790_000_000_000
P0 = TopicPartition("shop.changes", 0)
ABOUT = About("run-1", 4711, {}, 1, 120.0)
READING = FetcherFigures(True, False, {}, 0, 0, 0, None)
UP = SessionFigures(pid=4712, age_s=49_000.0, rebuilt=0)


def target(name: str, rows: int = 0, **changes: Any) -> TargetFigures:
    """A target that has written so many rows, in batches of 500 in a fifth of a second each."""
    writes = rows // 500
    calm = TargetFigures(
        target=name,
        phase="ready",
        buffered_messages=0,
        buffered_bytes=0,
        waiting_s=None,
        staged_files=0,
        staged_bytes=0,
        messages_read=rows,
        messages_replayed=0,
        messages_dropped=0,
        rows_read=rows,
        rows_written=rows,
        rows_stored=rows,
        values_nulled=0,
        dead_letters=0,
        write=None,
        error=None,
        hwms={P0: rows},
        writes=writes,
        write_seconds=writes * 0.2,
    )
    return replace(calm, **changes)


def writing(name: str, rows: int) -> TargetFigures:
    """One with a write in flight."""
    write = WriteFigures(rows=480, attempt=1, age_s=0.4, retry_in_s=None)
    return target(name, rows, phase="writing", write=write, buffered_messages=900,
                  buffered_bytes=450_000)  # fmt: skip


def failing(name: str, reason: str, rows: int = 0) -> TargetFigures:
    """One whose write is refused again and again."""
    write = WriteFigures(rows=480, attempt=6, age_s=95.0, retry_in_s=4.0)
    return target(name, rows, phase="writing", write=write,
                  error=ErrorFigures(f"{name}: {reason}", 3.0, True))  # fmt: skip


def quarantined(name: str, reason: str) -> TargetFigures:
    """One whose messages are spilled."""
    kept = QuarantineFigures(reason, 3_400_000, 8_200, {P0: (100, 900)}, False, False)
    return target(name, 5_000, phase="quarantined", quarantine=kept,
                  error=ErrorFigures(reason, 600.0, True))  # fmt: skip


BESIDE = "cuts", "counts", "through"


def status(
    targets: Sequence[TargetFigures],
    *,
    uptime_s: float = 93_000.0,
    read: int = 500_000,
    holder: str | None = None,
    lag: int = 0,
    letters: int = 0,
    jobs: Iterable[Mapping[str, Any]] = (),
    differ: Mapping[str, str] | None = None,
    recorded: Sequence[str] = (),
    name: str = "shop",
    cuts: CutFigures | None = None,
    counts: SideFigures | None = None,
    through: SideFigures | None = None,
    uncut: str | None = None,
) -> dict[str, Any]:
    """A daemon with one pipeline. ``holder`` holds its frontier ``lag`` messages before the end.
    ``recorded``: targets that earlier runs have written."""
    frontier = read - lag
    lanes = () if holder is None else (LaneFigures(holder, frontier, NOW_MS - 740_000),)
    committer = CommitterFigures(
        partitions={P0: PartitionFigures(frontier, read, frontier, NOW_MS - 1_200, lanes)},
        applied_ms={t.target: NOW_MS - 1_200 for t in targets},
        changes=read,
        stale=0,
        saved_age_s=2.0,
        save_error=None,
        rows_may_differ=differ or {},
        targets=tuple(recorded),
    )
    replies = {
        SUPERVISOR: LifeFigures({name: "running"}, {}, False),
        Address(name, "fetcher"): replace(READING, messages=read, uncut=uncut),
        Address(name, "committer"): committer,
        Address(name, "dead-letters"): DeadLetterFigures(letters, 0, None, letters),
        Address(name, "processor", 0): ProcessorFigures(False, tuple(targets)),
    } | {Address(name, r): f for r, f in zip(BESIDE, (cuts, counts, through), strict=True)}
    about, ends = replace(ABOUT, groups={name: "g"}), {name: LogFigures({P0: read}, None)}
    return document(about, Answers(replies), NOW_MS, uptime_s, UP, ends, list(jobs))


def several(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """One daemon with the pipelines of them all."""
    found = dict(documents[0])
    found["pipelines"] = [p for each in documents for p in each["pipelines"]]
    return judged(found)


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """With what is not well now: something was changed in it."""
    every = conditions(found)
    ready = not {one.kind for one in every} & UNREADY
    return found | {"conditions": [one.document() for one in every], "ready": ready}


def job(**changes: Any) -> dict[str, Any]:
    """A load under way, as the document shows jobs."""
    made = Job(
        "load-3f2a9c01",
        JobRequest("load", "shop", ("lake.shop.orders",)),
        State.RUNNING,
        progress=JobProgress(1_250_000, 5_000_000, "rows", 21_000.0, 178.0),
        message="chunk 25 of 100",
    )
    return {**figures_of(made), **changes}

"""Builds the status document from the actors' answers. Pure; times are arguments.

Its members are described in ``docs/watch.md``. ``/metrics`` shows the same document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pykka

from actors.contract.addresses import Address
from actors.contract.figures import (
    CommitterFigures,
    DeadLetterFigures,
    FetcherFigures,
    ProcessorFigures,
)
from actors.runtime.program_keeper import ProgramFigures
from collector.figures import CollectorFigures
from daemon.admin.status import document as doc
from daemon.admin.status.beside import program_of, session_of
from daemon.admin.status.conditions import UNREADY
from daemon.admin.status.cuts_member import cuts_of, side_work
from daemon.admin.status.health import conditions
from daemon.admin.status.histograms import histograms_of
from daemon.admin.status.observer import SUPERVISOR, Answers
from daemon.admin.status.runbook import DOCS
from daemon.admin.status.status_parts import (
    freshness_of,
    lag_of,
    last_error,
    letters_of,
    partitions_of,
    rows_may_differ,
    summed,
    targets_of,
)
from daemon.operations.figures import JobFigures
from daemon.state.pauses import Pause
from settings.version import VERSION
from sources.base.log_figures import LogFigures
from sparkwriter.session.keeper import SessionFigures

SCHEMA = 1
"""Version of the document: new members may be added, existing ones keep their meaning."""

SOME_GONE = 100
"""Topics that the document names; of all it has the number."""

NO_FETCHER = FetcherFigures(False, False, {}, 0, 0, 0, None)
NO_COMMITTER = CommitterFigures({}, {}, 0, 0, None, None)
NO_LETTERS = DeadLetterFigures(0, 0, None)
UNKNOWN = LogFigures()
"""The figures of actors that have not answered yet, or do not exist."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LifeFigures:
    """The supervisor's answer: each pipeline's stage, and why it failed."""

    stages: Mapping[str, str]
    failures: Mapping[str, str]
    stopping: bool


@dataclass(frozen=True, slots=True)
class AskLife:
    """A query to the supervisor, which is no actor: it sets the answer, a ``LifeFigures``."""

    answer: pykka.Future[object]


@dataclass(frozen=True, slots=True)
class About:
    """What does not change while the process runs."""

    run: str
    pid: int
    groups: Mapping[str, str]
    processors: int
    stuck_after_s: float
    docs: str = DOCS


def document(
    about: About,
    answers: Answers,
    now_ms: int,
    uptime_s: float,
    session: SessionFigures | None = None,
    log_ends: Mapping[str, LogFigures] | None = None,
    jobs: Sequence[JobFigures] = (),
    credentials: Sequence[doc.Credential] = (),
    pauses: Mapping[str, Pause] | None = None,
    collectors: Sequence[CollectorFigures] = (),
    programs: Sequence[ProgramFigures] = (),
    state_dir: doc.StateFigures | None = None,
    gates: Sequence[doc.GateShown] = (),
) -> doc.Status:
    """``now_ms`` is Unix time in milliseconds. ``session`` None: no sink needs one. A pipeline
    without ``log_ends`` has unknown ends. ``pauses``: who paused which pipeline."""
    life, paused = _life(answers), pauses or {}
    pipelines = _pipelines(about, answers, life, log_ends or {}, paused, now_ms)
    found: doc.Facts = {
        "schema": SCHEMA,
        "state": _state(life),
        "version": VERSION,
        "run": about.run,
        "pid": about.pid,
        "uptime_seconds": round(uptime_s, 3),
        "time_ms": now_ms,
        "silent": _silent(answers.silent, about.stuck_after_s),
        "spark": None if session is None else session_of(session),
        "programs": [program_of(each) for each in programs],
        "pipelines": pipelines,
        "paused_targets": _show_paused(pipelines, paused, now_ms),
        "jobs": list(jobs),
        "credentials": list(credentials),
        "state_dir": state_dir,
        "collectors": list(collectors),
        "gates": list(gates),
    }
    return _judged(found, about.docs)


def _judged(found: doc.Facts, docs: str) -> doc.Status:
    every = conditions(found)
    kinds = {one.kind for one in every}
    return {
        **found,
        "ready": not kinds & UNREADY,
        "healthy": "stuck" not in kinds,
        "conditions": [one.document(docs) for one in every],
    }


def _life(answers: Answers) -> LifeFigures | None:
    found = answers.replies.get(SUPERVISOR)
    return found if isinstance(found, LifeFigures) else None


def _state(life: LifeFigures | None) -> str:
    return "starting" if life is None else "stopping" if life.stopping else "running"


def _show_paused(
    pipelines: Sequence[doc.Pipeline], pauses: Mapping[str, Pause], now_ms: int
) -> dict[str, doc.Paused]:
    """Show paused targets as such, whatever write they had; return their pauses. A target's name
    has a point, a pipeline's has none."""
    paused = {name: pause for name, pause in sorted(pauses.items()) if "." in name}
    for each in (target for pipeline in pipelines for target in pipeline["targets"]):
        if each["target"] in paused and each["phase"] not in ("quarantined", "away"):
            each["phase"] = "paused"
    return {name: _pause(pause, now_ms) for name, pause in paused.items()}


def _silent(silent: Mapping[Address, float], stuck_after_s: float) -> list[doc.Silent]:
    return [
        {"actor": str(address), "seconds": round(seconds, 3), "stuck": seconds >= stuck_after_s}
        for address, seconds in sorted(silent.items())
        if seconds > 0
    ]


def _paused(pause: Pause | None, now_ms: int) -> doc.Paused | None:
    return None if pause is None else _pause(pause, now_ms)


def _pause(pause: Pause, now_ms: int) -> doc.Paused:
    seconds = max(0, now_ms - pause.since_ms) / 1000
    return {"seconds": seconds, "since_ms": pause.since_ms, "reason": pause.reason}


def _pipelines(
    about: About,
    answers: Answers,
    life: LifeFigures | None,
    ends: Mapping[str, LogFigures],
    paused: Mapping[str, Pause],
    now_ms: int,
) -> list[doc.Pipeline]:
    return [
        _pipeline(name, about, answers, life, ends.get(name, UNKNOWN), paused.get(name), now_ms)
        for name in sorted(about.groups)
    ]


def _pipeline(
    name: str,
    about: About,
    answers: Answers,
    life: LifeFigures | None,
    log_ends: LogFigures,
    pause: Pause | None,
    now_ms: int,
) -> doc.Pipeline:
    fetcher = _reply(answers, Address(name, "fetcher"), NO_FETCHER)
    committer = _reply(answers, Address(name, "committer"), NO_COMMITTER)
    letters = _reply(answers, Address(name, "dead-letters"), NO_LETTERS)
    processors = _processors(answers, name, about.processors)
    partitions = partitions_of(log_ends, committer, now_ms)
    figures = sorted((t for p in processors for t in p.targets), key=lambda t: t.target)
    doubted = rows_may_differ(committer, figures)
    ends = {p["source"]: p["log_end"] for p in partitions}
    stage = life.stages.get(name, "starting") if life else "starting"
    reading = stage == "running" and fetcher.assigned and log_ends.unknown_s is None
    targets = targets_of(figures, committer, ends, doubted, now_ms, reading)
    return {
        "pipeline": name,
        "group": about.groups[name],
        "stage": stage,
        "failure": life.failures.get(name) if life else None,
        **_reading(fetcher, processors, log_ends, _paused(pause, now_ms)),
        **lag_of(partitions, reading),
        "freshness_seconds": freshness_of(partitions),
        **_counts(fetcher, committer, targets),
        "offset_file": {"saved_seconds_ago": committer.saved_age_s, "error": committer.save_error},
        "dead_letters": letters_of(letters),
        "cuts": cuts_of(answers.replies.get(Address(name, "cuts")), fetcher.uncut, now_ms),
        "counts": side_work(answers.replies.get(Address(name, "counts")), now_ms),
        "valid_through": side_work(answers.replies.get(Address(name, "through")), now_ms),
        "last_error": last_error(targets),
        "rows_may_differ": doubted,
        "partitions": partitions,
        "targets": targets,
    }


def _reading(
    fetcher: FetcherFigures,
    processors: Sequence[ProcessorFigures],
    log_ends: LogFigures,
    pause: doc.Paused | None,
) -> doc.Reading:
    return {
        "assigned": fetcher.assigned,
        "paused": fetcher.paused,
        "paused_by_a_person": pause,
        "held": any(p.held for p in processors),
        "broker_unreachable_seconds": fetcher.unreachable_s,
        "log_ends_unknown_seconds": log_ends.unknown_s,
        "log_ends_error": log_ends.error,
        "registry_away_seconds": fetcher.registry.away_s,
        "registry_error": fetcher.registry.away,
    }


def _reply(answers: Answers, address: Address, none: T) -> T:
    """An actor's figures; ``none`` until it has answered."""
    found = answers.replies.get(address)
    return found if isinstance(found, type(none)) else none


def _processors(answers: Answers, name: str, count: int) -> list[ProcessorFigures]:
    replies = (answers.replies.get(Address(name, "processor", n)) for n in range(count))
    return [reply for reply in replies if isinstance(reply, ProcessorFigures)]


def _without_news(committer: CommitterFigures, targets: Sequence[doc.Target]) -> list[str]:
    """Targets that earlier runs have written, and that are not opened in this one."""
    return sorted({*committer.targets} - {each["target"] for each in targets})


def _counts(
    fetcher: FetcherFigures, committer: CommitterFigures, targets: Sequence[doc.Target]
) -> doc.Counts:
    awaited = fetcher.registry.awaited
    return {
        "messages_read": fetcher.messages,
        "messages_dropped": fetcher.dropped + sum(t["messages_dropped"] for t in targets),
        "messages_sent_again": fetcher.repeated,
        "messages_passed_over": fetcher.passed_over,
        "messages_left_out": fetcher.left_out,
        "tables_left_out": fetcher.left_out_tables,
        "left_out": dict(sorted(fetcher.left_out_named.items())),
        "stale_acknowledgements": committer.stale,
        "parked_bytes": fetcher.parked_bytes,
        "formats": dict(sorted(fetcher.formats.items())),
        "formats_awaited": dict(sorted(fetcher.formats_awaited.items())),
        "schemas_awaited": {
            topic: {"messages": each.messages, "schemas": list(each.schemas)}
            for topic, each in sorted(awaited.items())
        },
        "messages_awaiting_schemas": sum(each.messages for each in awaited.values()),
        "topics_gone": sorted(fetcher.topics_gone)[:SOME_GONE],
        "topics_gone_count": len(fetcher.topics_gone),
        **summed(targets),
        **histograms_of(committer),
        "targets_without_news": _without_news(committer, targets),
        "writes_in_flight": sum(t["write"] is not None for t in targets),
        "oldest_write_seconds": max(
            (t["write"]["age_seconds"] for t in targets if t["write"]), default=None
        ),
    }

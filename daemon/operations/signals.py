"""Debezium's signals from a topic: what a record asks of the jobs. Pure.

``docs/jobs.md`` names what is understood. Whatever is not is refused by name: a signal that
asks for less than a whole table must not become a load of all its rows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

import structlog

from actors.runtime.backoff import BackOff
from changes.model.printable import holds_half
from daemon.operations.engine.effects import Request
from daemon.operations.engine.port import JobKind, Look, Plan
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.engine.runner import JobRunner, JobsClosed
from daemon.operations.engine.thread import AWAY, REFUSED
from daemon.operations.load.of_tables import together
from offsets.position import TopicPartition
from sources.base.port import LogRecord, NotAnswered

LONGEST_ID = 42
"""Characters: as wide as the column of Debezium's signalling table."""

LONGEST_SHOWN = 200
"""Characters of what a record says, in the reason of its refusal: it may have megabytes."""

REQUESTS: dict[str, Request] = {
    "pause-snapshot": "pause",
    "resume-snapshot": "resume",
    "stop-snapshot": "cancel",
}

_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
"""A name without any sign of a regular expression."""


class SignalRefused(Exception):
    """Nothing is done: one line."""


class NotForUs(SignalRefused):
    """Its key names another connector."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A request. ``tables``: patterns (``*``) on ``database.table``; for ``pause`` and others
    none means all. ``pipelines``: for which."""

    id: str
    request: Literal["execute", "pause", "resume", "cancel"]
    pipelines: tuple[str, ...]
    tables: tuple[str, ...] = ()


def read_signal(key: bytes | None, value: bytes | None, pipelines: Collection[str]) -> Signal:
    """Read a record. Raises SignalRefused, NotForUs."""
    chosen = _chosen(key, pipelines)
    document = _object(value, "it is not a JSON object")
    type_, id_ = document.get("type"), document.get("id", "")
    if not isinstance(id_, str) or len(id_) > LONGEST_ID:
        raise SignalRefused(f'"id" is no text of at most {LONGEST_ID} characters')
    data = document.get("data") or {}
    if isinstance(data, str):  # as in the signalling table's column
        data = _object(data, '"data" is not a JSON object')
    if not isinstance(data, dict):
        raise SignalRefused('"data" is not an object')
    if type_ == "execute-snapshot":
        return Signal(id_, "execute", chosen, _asked_tables(data))
    if type_ == "stop-snapshot":
        return Signal(id_, "cancel", chosen, _tables(data))
    if isinstance(type_, str) and type_ in REQUESTS:
        return Signal(id_, REQUESTS[type_], chosen)
    known = ", ".join(["execute-snapshot", *REQUESTS])
    raise SignalRefused(f"its type is {repr(type_)[:LONGEST_SHOWN]}; known: {known}")


def _chosen(key: bytes | None, pipelines: Collection[str]) -> tuple[str, ...]:
    if key is None:
        return tuple(sorted(pipelines))
    name = key.decode(errors="replace")
    if name not in pipelines:
        raise NotForUs(f"its key {name!r} names none of the pipelines")
    return (name,)


def _object(value: bytes | str | None, problem: str) -> dict[str, Any]:
    try:
        found = json.loads(value or b"")
        half = holds_half(found)
    except (ValueError, RecursionError) as error:
        raise SignalRefused(f"{problem}: {error}") from error
    if half:
        raise SignalRefused("it holds text that is not UTF-8; no name is such a text")
    if not isinstance(found, dict):
        raise SignalRefused(problem)
    return found


def _asked_tables(data: dict[str, Any]) -> tuple[str, ...]:
    kind = str(data.get("type", "incremental"))
    if kind.lower() != "incremental":
        raise SignalRefused(f"a snapshot of type {kind!r} is requested, not an incremental one")
    for name in ("additional-conditions", "additional-condition", "surrogate-key"):
        if data.get(name):
            raise SignalRefused(f"{name!r} is not supported: a table is loaded whole")
    tables = _tables(data)
    if not tables:
        raise SignalRefused('"data-collections" names no table')
    return tables


def _tables(data: dict[str, Any]) -> tuple[str, ...]:
    names = data.get("data-collections") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SignalRefused('"data-collections" is not a list of texts')
    return tuple(_pattern(name) for name in names)


def _pattern(expression: str) -> str:
    """Debezium's are regular expressions: names, and ``.*`` for any, are understood."""
    parts = re.split(r"(\.\*|\\\.|\.)", expression.strip())
    words = []
    for part in parts:
        if part == ".*":
            words.append("*")
        elif part in (".", "\\."):
            words.append(".")
        elif part and not _PLAIN.fullmatch(part):
            raise SignalRefused(f"{expression!r}: only names and .* are understood, as shop\\..*")
        else:
            words.append(part)
    pattern = "".join(words)
    if "." not in pattern and "*" not in pattern:
        raise SignalRefused(f"{expression!r} is not of the form database.table")
    return pattern


# Carries Debezium's signals out on the jobs, and says in the log what became of each.

T = TypeVar("T")

KIND = "load"
"""The kind of job that a snapshot is."""

PATIENCE_S = 600.0
"""How long a signal waits for a database or broker that is away, before it is refused by name. The
signals behind it wait as well."""

STORED_WITHIN_S = 30.0


class NotStored(Exception):
    """A job, or a request of one, is not durable: one line. It may be later."""


class SignalDesk:
    """One thread's, the signals' reader's."""

    def __init__(
        self,
        runner: JobRunner,
        kinds: Mapping[str, JobKind],
        look: Callable[[], Look],
        back_off: BackOff | None = None,
    ) -> None:
        self._runner = runner
        self._kinds = kinds
        self._look = look
        self._back_off = back_off or BackOff(PATIENCE_S, base_s=1.0, max_s=30.0)
        self._left = ("", "")
        self._log: Any = structlog.get_logger().bind(actor="jobs")

    def carry_out(self, source: TopicPartition, record: LogRecord, topic_id: str) -> bool:
        """Do what a record asks; False: not now. Raises nothing: what can't be done is in the log
        by name."""
        place = f"{source}@{record.offset}"
        try:
            look = self._look()
            signal = read_signal(record.key, record.value, look.config.pipeline)
            if signal.request == "execute":
                where = f"{topic_id}:{source.partition}@{record.offset}"
                jobs = self._execute(signal, look, place, where)
            else:
                jobs = self._ask(signal)
        except NotForUs as error:
            self._log.info("signal_of_others", signal=place, reason=str(error))
        except (JobsClosed, NotStored) as error:
            self._tell_left(place, str(error))
            return False
        except (SignalRefused, NotAnswered, *AWAY, *REFUSED) as error:
            self._log.error("signal_refused", signal=place, reason=str(error))
        except Exception:
            # An unforeseen fault of one signal must not end the reading of the others.
            self._log.exception("signal_refused", signal=place)
        else:
            fields = {"id": signal.id, "request": signal.request, "jobs": jobs}
            self._log.info("signal_carried_out", signal=place, **fields)
        return True

    def _tell_left(self, place: str, reason: str) -> None:
        """Once, while the reason stays: it is tried every few seconds."""
        if (place, reason) != self._left:
            self._left = (place, reason)
            self._log.warning("signal_left", signal=place, reason=reason)

    def _execute(self, signal: Signal, look: Look, place: str, where: str) -> list[str]:
        kind = self._kinds.get(KIND)
        if kind is None:
            raise SignalRefused(f"this binlogd has no job of the kind {KIND!r}")
        found = {name: self._plan(kind, look, signal, name, place) for name in signal.pipelines}
        plans = together(found, signal.tables)
        good = [plan for plan in plans.values() if plan.wanted and not plan.refusals]
        refusals = [f"{name}: {why}" for name, plan in plans.items() for why in plan.refusals]
        if not good:
            raise SignalRefused("; ".join(refusals) or "no table matches")
        if refusals:
            self._log.warning("signal_refused_in_part", signal=place, reasons=refusals)
        jobs = []
        for at, wanted in enumerate(wanted for plan in good for wanted in plan.wanted):
            # The same name again, where a crash came before the place was stored.
            told = replace(wanted, origin=f"signal {place}", signal=signal.id)
            jobs.append(_stored(self._runner.add(told, _id_of(where, at))).id)
        return jobs

    def _plan(self, kind: JobKind, look: Look, signal: Signal, pipeline: str, place: str) -> Plan:
        wanted = JobRequest(KIND, pipeline, signal.tables, {}, f"signal {place}", signal.id)

        def waits(error: Exception, attempt: int) -> None:
            self._log.warning("signal_waits", signal=place, reason=str(error), attempt=attempt)

        return self._back_off.call(lambda: kind.plan(look, wanted), AWAY, waits)

    def _ask(self, signal: Signal) -> list[str]:
        assert signal.request != "execute"
        asked, refusals = [], []
        for job in self._loads(signal):
            refusal = _stored(self._runner.ask(job.id, signal.request))
            if refusal is None:
                asked.append(job.id)
            else:
                refusals.append(refusal)
        if not asked:
            raise SignalRefused("; ".join(refusals) or "there is no load that it could be for")
        return asked

    def _loads(self, signal: Signal) -> Iterator[Job]:
        for job in self._runner.jobs:
            wanted = job.wanted
            tables = [str(name) for name in wanted.params.get("tables", ())]
            meant = not signal.tables or any(
                fnmatchcase(table, pattern) for table in tables for pattern in signal.tables
            )
            mine = wanted.kind == KIND and wanted.pipeline in signal.pipelines
            if mine and meant and not job.state.is_final:
                yield job


def _id_of(where: str, at: int) -> str:
    """The same for the same signal, and no other's: tables are named after its last part."""
    return f"{KIND}-{hashlib.sha256(f'{where}/{at}'.encode()).hexdigest()[:12]}"


def _stored(done: Future[T]) -> T:
    """Raises NotStored, JobsClosed."""
    try:
        return done.result(STORED_WITHIN_S)
    except NotYet as error:
        raise NotStored(f"the jobs did not answer within {STORED_WITHIN_S:g} s") from error
    except OSError as error:
        raise NotStored(str(error)) from error

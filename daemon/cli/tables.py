"""``binlogd tables``: lists the targets, and releases one from quarantine."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from actors.contract.figures import bare
from changes.model.model import TargetName
from changes.model.printable import json_text
from daemon.admin.status.status_table import size
from daemon.admin.target_rows import Row, left_out_rows, running_rows, with_paused, with_recorded
from daemon.config.config import Config
from daemon.operations import requests as offline
from daemon.operations.engine.record import Job, Wanted
from daemon.operations.engine.store import JobStore
from daemon.operations.rebuild.kind import FLAGS, KIND, job_of, rebuild_job, refuse_live_load
from daemon.operations.rebuild.plan import RebuildRequest, pipeline_of
from daemon.operations.rebuild_answer import said
from daemon.operations.runner import now
from daemon.state import control
from daemon.state.edits import EditRefused, edit_offline
from daemon.state.offset_transfer import export_snapshot, recorded_snapshot
from daemon.state.pauses import Pauses, PausesUnreadable
from databases.base.port import DatabaseAway
from offsets.store import StoreError
from settings.exit import Exit
from sparkwriter.sinks import unreplaceable


def list_tables(settings: Config, console: Console, as_json: bool) -> int:
    """Print all targets, of the running daemon or else as recorded. Returns the exit status."""
    pauses = Pauses(settings.daemon.state_dir)
    try:
        status = control.ask(settings.daemon.state_dir, {"ask": "status"})
        open_ = [*running_rows(status), *left_out_rows(status)]
        paused = [*status["paused_targets"]]
    except control.NotRunning:
        try:
            pauses.load()
        except (PausesUnreadable, OSError) as error:
            print(f"binlogd: {error}", file=sys.stderr)
            return Exit.PIPELINE_FAILED.value
        open_, paused = None, [name for name in pauses.now() if "." in name]
    except (control.ControlError, OSError) as error:
        print(f"binlogd: {error}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    return _list(settings, open_, paused, console, as_json)


def retry(settings: Config, target: str) -> int:
    """Have a target released. Returns the exit status."""
    try:
        answer = control.ask(settings.daemon.state_dir, {"ask": "tables-retry", "target": target})
    except control.NotRunning as error:
        print(f"binlogd: {error}: a target is released by the running daemon", file=sys.stderr)
        return Exit.NOT_RUNNING.value
    except control.ControlError as error:
        print(f"binlogd: {error}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    return _answered(answer)


def rebuild(settings: Config, target: str, flags: Mapping[str, bool]) -> int:
    """Have a target read again from its log, by the running daemon or by the next one. Returns the
    exit status. ``flags``: force, keep_old, cancel."""
    try:
        request = {"ask": "tables-rebuild", "target": target, **flags}
        answer = control.ask(settings.daemon.state_dir, request, timeout_s=60.0)
    except control.NotRunning:
        return _rebuild_offline(settings, target, flags)
    except control.ControlError as error:
        print(f"binlogd: {error}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    return _answered(answer)


def _answered(answer: Mapping[str, Any]) -> int:
    """Print the daemon's answer to a request that starts something. Returns the exit status."""
    if not answer["begun"]:
        print(f"binlogd: {answer['line']}", file=sys.stderr)
        return Exit.UNUSABLE.value
    print(answer["line"])
    return Exit.OK.value


def _rebuild_offline(settings: Config, target: str, flags: Mapping[str, bool]) -> int:
    try:
        found = (export_snapshot(settings, name).snapshot for name in settings.pipeline)
        recorded = pipeline_of((s for s in found if s is not None), target)
        wanted = RebuildRequest(settings, recorded.pipeline, target, uuid4().hex[:8], **flags)
        if wanted.cancel and target in recorded.rebuilds:
            jobs = JobStore(settings.daemon.state_dir).load().jobs
            refuse_live_load(recorded, target, jobs)
            _cancel_job(settings, job_of(jobs, target))
        elif not wanted.cancel:
            for why in unreplaceable(settings, [TargetName.parse(target)]).values():
                raise EditRefused(f"{target}: {why}")
        edit_offline(settings, recorded.pipeline, wanted)
    except (EditRefused, offline.NotRecorded) as error:
        print(f"binlogd: {settings.redactor.text(str(error))}", file=sys.stderr)
        return Exit.UNUSABLE.value
    except (StoreError, DatabaseAway, OSError) as error:
        print(f"binlogd: {settings.redactor.text(str(error))}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    if not wanted.cancel:
        _record_job(settings, wanted)
    print(f"{said(target, flags['cancel'])}, from the next start on")
    return Exit.OK.value


def _record_job(settings: Config, wanted: RebuildRequest) -> None:
    """The job of an edit that is durable. Where it is missing, the next start makes it."""
    flags = {name: getattr(wanted, name) for name in FLAGS}
    asked = Wanted(KIND, wanted.pipeline, (wanted.target,), flags)
    try:
        offline.record(settings.daemon.state_dir, rebuild_job(asked, wanted.number, now().ms))
    except offline.NotRecorded as error:
        print(f"binlogd: its job is recorded by the next start: {error}", file=sys.stderr)


def _cancel_job(settings: Config, job: Job | None) -> None:
    """Before the edit: the next start would take a rebuild that is gone for one that is done."""
    if job is not None and not job.wish:
        offline.ask(settings.daemon.state_dir, job.id, "cancel")


def _list(
    settings: Config,
    open_: list[Row] | None,
    paused: Collection[str],
    console: Console,
    as_json: bool,
) -> int:
    """Print a daemon's open targets (None: no daemon), and the other recorded ones."""
    rows: list[Row] = []
    damaged = False
    for name in settings.pipeline:
        try:
            loaded = recorded_snapshot(settings, name)
        except (OSError, StoreError) as error:
            said = settings.redactor.text(str(error))
            print(
                f"binlogd: pipeline.{name}: what is recorded can't be read: {said}", file=sys.stderr
            )
            return Exit.UNUSABLE.value
        for damage in loaded.damage:
            damaged = True
            print(f"binlogd: {damage}", file=sys.stderr)
        mine = None if open_ is None else [row for row in open_ if row["pipeline"] == name]
        rows += with_recorded(name, mine, loaded.snapshot)
    # A daemon may run with another configuration than this one.
    rows += [row for row in open_ or () if row["pipeline"] not in settings.pipeline]
    _print(console, with_paused(settings, rows, paused), as_json)
    return Exit.PIPELINE_FAILED.value if damaged else Exit.OK.value


def _print(console: Console, rows: Iterable[Row], as_json: bool) -> None:
    if as_json:
        print(json_text(list(rows), indent=1))
        return
    table = Table("target", "phase", "high-water marks", "spilled", "last error", box=None)
    rows = list(rows)
    doubted = any(row["rows_may_differ"] for row in rows)
    if doubted:
        table.add_column("rows may differ")
    for row in rows:
        marks = ", ".join(f"{s}={hwm}" for s, hwm in row["high_water_marks"].items())
        spilled = "-" if row["spill"] is None else _spilled(row["spill"])
        error = bare(row["target"], row["last_error"] or "-")
        texts = (row["target"], row["phase"], marks or "-", spilled, error)
        why = (row["rows_may_differ"] or "-",) if doubted else ()
        table.add_row(*map(escape, (*texts, *why)))
    console.print(table)


def _spilled(spill: Mapping[str, Any]) -> str:
    lanes = ", ".join(f"{s} {first}..{last}" for s, (first, last) in spill["lanes"].items())
    return f"{size(spill['bytes'])} ({lanes})" + (", full" if spill.get("full") else "")

"""``binlogd tables discard``, the command: prints what would be lost, or gives it up."""

from __future__ import annotations

import sys

from daemon.config.config import Config
from daemon.operations.discard import ASK, Discard, said
from daemon.state import control
from daemon.state.edits import EditRefused, edit_offline
from daemon.state.offset_transfer import export_snapshot
from daemon.state.spills.file import SpillError, SpillFolder
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.exit import Exit


def discard(settings: Config, target: str, execute: bool) -> int:
    """Print what would be given up, or give it up, through a running daemon. Returns the exit
    status."""
    try:
        wanted, snapshot = _wanted(settings, target)
        _, lines = wanted.look(snapshot)
        print(*lines, sep="\n")
        if not execute:
            print("nothing was changed: --execute does it")
            return Exit.OK.value
        print(_done(settings, wanted))
    except EditRefused as error:
        print(f"binlogd: {settings.redactor.text(str(error))}", file=sys.stderr)
        return Exit.UNUSABLE.value
    except (StoreError, control.ControlError) as error:
        print(f"binlogd: {settings.redactor.text(str(error))}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    return Exit.OK.value


def _wanted(settings: Config, target: str) -> tuple[Discard, Snapshot]:
    """The pipeline that owns the target, by snapshots and by existing spills."""
    known: set[str] = set()
    for name in settings.pipeline:
        snapshot = export_snapshot(settings, name).snapshot
        snapshot = snapshot or Snapshot(name, settings.group(name))
        try:
            held = SpillFolder(settings.daemon.state_dir, name).held()
        except (SpillError, OSError) as error:
            raise EditRefused(str(error)) from error
        names = {*snapshot.targets, *snapshot.spills, *snapshot.rebuilds}
        names |= {str(spill.target) for spill in held}
        if target in names:
            return Discard(settings, name, target), snapshot
        known |= names
    listed = f"; there are: {', '.join(sorted(known)[:20])}" if known else ""
    raise EditRefused(f"{target}: unknown, nothing of it is recorded{listed}")


def _done(settings: Config, wanted: Discard) -> str:
    request = {"ask": ASK, "target": wanted.target, "pipeline": wanted.pipeline}
    try:
        answer = control.ask(settings.daemon.state_dir, request, timeout_s=60.0)
    except control.NotRunning:
        edit_offline(settings, wanted.pipeline, wanted)
        return said(wanted.target)
    if not answer["begun"]:
        raise EditRefused(answer["line"])
    return str(answer["line"])

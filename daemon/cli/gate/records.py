"""``binlogd gate list``, ``reopen`` and ``forget``: what gates have closed."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from changes.model.printable import json_text
from daemon.admin.status.result_tables import print_gates
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console, refuse
from daemon.config.gates import moment_ms
from daemon.state.gate_store import DamagedGate, GateStore
from daemon.state.gates_shown import GateFiles
from daemon.state.offset_file import StateDirBusy
from offsets.gate_record import NotClosed, check_closed, iso

app = typer.Typer(help="When tables are complete.", no_args_is_help=True)

GateArgument = Annotated[str, typer.Argument(metavar="GATE", help="As gate list shows it.")]


@app.command("list", epilog="Example: binlogd gate list")
def gate_list(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the gates, and why each is shut.

    Closed through when, why the next partition is not complete, who is not told yet, and why.
    """
    settings = load_config(config, lenient=True)
    files, now_ms = GateFiles(settings.daemon.state_dir), time.time_ns() // 1_000_000
    found = files.shown(settings.gates, now_ms, others=True)
    if as_json:
        print(json_text(found, indent=1))
        return
    console = make_console()
    if not found:
        console.print(r"no gate is configured: \[gates.NAME]")
        return
    print_gates(console, found)


@app.command("reopen", epilog="Example: binlogd gate reopen orders_daily 2026-11-25T00:00:00Z")
def gate_reopen(
    gate: GateArgument,
    begin: Annotated[str, typer.Argument(metavar="BEGIN", help="Where the partition begins.")],
    config: ConfigOption = None,
) -> None:
    """Reopen a closed partition.

    As after a repair: it closes again by itself, under its next version. binlogd gate run does so
    with its next look. Status 2: no such partition has closed.
    """
    settings = load_config(config, lenient=True)
    store = GateStore(settings.daemon.state_dir)
    if gate not in settings.gates:
        refuse(f"there is no gate {gate!r}; have: {', '.join(sorted(settings.gates)) or 'none'}")
    try:
        begin_ms = moment_ms(begin)
        record = store.record(gate)
        if record is None:
            refuse(f"gate {gate} has closed nothing yet")
        check_closed(record, begin_ms)
        store.request(gate, begin_ms)
    except (ValueError, NotClosed, DamagedGate, OSError) as error:
        refuse(str(error))
    print(f"{iso(begin_ms)} of gate {gate} is reopened by `binlogd gate run` with its next look")


@app.command("forget", epilog="Example: binlogd gate forget orders_daily")
def gate_forget(gate: GateArgument, config: ConfigOption = None) -> None:
    """Remove what is kept of a gate.

    Also what somebody was not told yet. One that is configured begins anew. binlogd gate run must
    not run meanwhile. Status 2: refused.
    """
    settings = load_config(config, lenient=True)
    store = GateStore(settings.daemon.state_dir)
    if gate not in store.names():
        refuse(f"nothing is recorded of a gate {gate!r}; of: {', '.join(store.names()) or 'none'}")
    try:
        with store.lock():
            store.forget(gate)
    except (StateDirBusy, OSError) as error:
        refuse(str(error))
    print(f"gate {gate}: forgotten")

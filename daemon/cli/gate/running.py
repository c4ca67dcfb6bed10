"""``binlogd gate run``: closes configured gates, and tells others."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, load_config, refuse
from daemon.cli.gate.runner import GateRunner
from daemon.config.config import Config
from daemon.state.gate_store import GateStore
from daemon.state.offset_file import StateDirBusy
from settings.exit import Exit

app = typer.Typer(help="When tables are complete.", no_args_is_help=True)


@app.command("run", epilog="Example: binlogd gate run")
def gate_run(
    gates: Annotated[
        list[str] | None, typer.Argument(metavar="GATE", help="These; without one all of them.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, tell, and end.")] = False,
    config: ConfigOption = None,
) -> None:
    """Close configured gates, and tell others.

    Partition by partition, as each is complete. It needs no running daemon. SIGTERM and Ctrl-C end
    it with status 0. With --once: 0 where all that is due is closed and told, else 75; 2: it can't
    be used.
    """
    settings = load_config(config)
    names = _chosen(settings, gates or ())
    with ExitStack() as held:
        try:
            held.enter_context(GateStore(settings.daemon.state_dir).lock())
        except StateDirBusy as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"daemon.state_dir {settings.daemon.state_dir} can't be used: {error}")
        runner = GateRunner(settings, names, _tell)
        status = (Exit.OK if runner.once() else Exit.DEADLINE) if once else _serve(runner)
    sys.stdout.flush()
    # No thread is awaited: what it does is repeated with the next start.
    os._exit(status.value)


def _chosen(settings: Config, gates: Sequence[str]) -> list[str]:
    if not settings.gates:
        refuse("no gate is configured: [gates.NAME]")
    for name in gates:
        if name not in settings.gates:
            refuse(f"there is no gate {name!r}; have: {', '.join(sorted(settings.gates))}")
    return sorted({*gates} or settings.gates)


def _serve(runner: GateRunner) -> Exit:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    runner.start()
    ended.wait()
    runner.close()
    return Exit.OK


def _tell(line: str) -> None:
    print(f"binlogd: {line}", file=sys.stderr, flush=True)

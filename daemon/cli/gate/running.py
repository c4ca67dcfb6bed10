"""``binlogd gate run``: closes configured gates, and tells others."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import (
    ConfigOption,
    ConfigUnusable,
    load_config,
    read_config,
    refuse,
)
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
    it with status 0; SIGHUP has it read the configuration again. With --once: 0 where all that is
    due is closed and told, else 75; 2: it can't be used.
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
        if once:
            status = Exit.OK if runner.once() else Exit.DEADLINE
        else:
            status = _serve(runner, config, gates or ())
    sys.stdout.flush()
    # No thread is awaited: what it does is repeated with the next start.
    os._exit(status.value)


def _chosen(settings: Config, gates: Sequence[str]) -> list[str]:
    if (why := _unfit(settings, gates)) is not None:
        refuse(why)
    return sorted({*gates} or settings.gates)


def _unfit(settings: Config, gates: Sequence[str]) -> str | None:
    """Why these gates can't be run; None: they can."""
    if not settings.gates:
        return "no gate is configured: [gates.NAME]"
    for name in gates:
        if name not in settings.gates:
            return f"there is no gate {name!r}; have: {', '.join(sorted(settings.gates))}"
    return None


_ENDS = {signal.SIGTERM, signal.SIGINT}


def _serve(runner: GateRunner, config: Path | None, gates: Sequence[str]) -> Exit:
    # Read from a pipe: a handler of Python's runs between two steps of the main thread, and one
    # that comes just before it waits for a queue would be heard with the next signal alone.
    told, tells = os.pipe()
    os.set_blocking(tells, False)
    signal.set_wakeup_fd(tells)
    for number in (*_ENDS, signal.SIGHUP):
        signal.signal(number, lambda caught, _: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    runner.start()
    while os.read(told, 1)[0] == signal.SIGHUP and not _run_again(config, gates, told):
        pass
    runner.close()
    return Exit.OK


def _run_again(config: Path | None, gates: Sequence[str], told: int) -> bool:
    """Have this process run the same command once more, where the configuration can be used now:
    what it does is recorded, so nothing is lost that is not repeated.

    Returns whether it is to end instead.
    """
    try:
        why = _unfit(read_config(config), gates)
    except ConfigUnusable as error:
        why = "; ".join(error.lines)
    if why is not None:
        _tell(f"the configuration is not taken: {why}")
        return False
    # An end that comes from here on is one by default, on whatever thread; SIGHUP waits until there
    # is a handler again.
    for number in _ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    os.set_blocking(told, False)
    with suppress(BlockingIOError):  # none came meanwhile
        if not _ENDS.isdisjoint(os.read(told, 4096)):
            return True
    _tell("reads the configuration again")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _tell(line: str) -> None:
    print(f"binlogd: {line}", file=sys.stderr, flush=True)

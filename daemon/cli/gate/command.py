"""``binlogd gate wait``: ends once tables hold all that their source had committed by a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from changes.model.printable import json_text
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, refuse
from daemon.cli.base.texts import time_text
from daemon.cli.gate.counted import CountsAgree
from daemon.cli.gate.looking import REFUSED, News, gates_of, look_at
from daemon.cli.gate.watch import GateLook, PipelineGate
from daemon.config.config import Config
from daemon.state.dead_letters.index import parse_since
from offsets.store import StoreError
from settings.exit import Exit
from settings.units import seconds_of

LOOK_EVERY_S = 2.0
"""Positions are recorded every 5 s."""

BEGAN = "read from offset {} on: the tables have what came before by a load, or not at all"

app = typer.Typer(help="When tables are complete.", no_args_is_help=True)

TablesArgument = Annotated[
    list[str], typer.Argument(metavar="TABLE", help="Targets, such as lake.shop.orders.")
]
ThroughOption = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="By the source's clock: 2026-01-31T00:00:00Z, or an age: 30m, 2h."
    ),
]
TimeoutOption = Annotated[
    str | None, typer.Option(help="How long to wait: 90s, 30m, 2h; 0s: look once. Else for ever.")
]
CutOption = Annotated[
    bool, typer.Option("--cut", help="Wait for a cut that has all of them, and print its number.")
]
InCutOption = Annotated[
    int | None, typer.Option("--in-cut", metavar="N", help="Wait until this cut has all of them.")
]
CountsOption = Annotated[
    str | None,
    typer.Option(
        "--counts-from",
        metavar="TIME",
        help="Wait until the counts of changes since then agree, too: see binlogd counts.",
    ),
]
EmptyOption = Annotated[
    bool, typer.Option("--empty", help="A table that nothing was ever written to may be empty.")
]


@app.command(
    "wait", epilog="Example: binlogd gate wait lake.shop.orders --through 2h --timeout 30m"
)
def gate_wait(
    tables: TablesArgument,
    through: ThroughOption,
    timeout: TimeoutOption = None,
    cut: CutOption = False,
    in_cut: InCutOption = None,
    counts_from: CountsOption = None,
    empty: EmptyOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Wait until tables hold all that their source had committed up to a moment.

    It looks at the log and at what is recorded, also while no daemon runs. Status 0: they do; 75:
    not within --timeout, and why; 2: it can't be told.
    """
    if cut and in_cut is not None:
        refuse("--cut or --in-cut, not both")
    settings = load_config(config)
    through_ms, patience_s = _times(through, timeout)
    try:
        counted = None if counts_from is None else _counted(settings, counts_from, through_ms)
        gates = gates_of(
            settings, tables, through_ms, _tell,
            empty=empty, cut=cut or in_cut is not None, in_cut=in_cut, counted=counted,
        )  # fmt: skip
        looked = _wait(settings, gates, patience_s)
    except REFUSED as error:
        refuse(settings.redactor.text(str(error)))
    except (StoreError, OSError) as error:
        refuse(settings.redactor.text(f"what is recorded can't be read: {error}"))
    shut = {name: why for each in looked for name, why in each.shut.items()}
    if as_json:
        print(json_text(_document(tables, through_ms, looked, shut), indent=1))
    elif shut:
        for name, why in shut.items():
            print(f"binlogd: not within {timeout}: {name}: {why}", file=sys.stderr)
    else:
        _print(tables, through_ms, looked)
    sys.exit(Exit.DEADLINE.value if shut else Exit.OK.value)


def _times(through: str, timeout: str | None) -> tuple[int, float | None]:
    """The moment, in Unix milliseconds, and the patience, in seconds."""
    try:
        moment = parse_since(through, datetime.now(UTC))
        patience_s = None if timeout is None else seconds_of(timeout)
    except (ValueError, OverflowError) as error:
        refuse(str(error))
    return int(moment.timestamp() * 1000), patience_s


def _counted(settings: Config, begins: str, through_ms: int) -> CountsAgree:
    try:
        begin = int(parse_since(begins, datetime.now(UTC)).timestamp() // 60)
    except (ValueError, OverflowError) as error:
        refuse(f"--counts-from: {error}")
    if begin < 0 or begin >= through_ms // 60_000:
        refuse("--through must be at least a minute after --counts-from")
    return CountsAgree(settings, range(begin, through_ms // 60_000))


def _wait(
    settings: Config, gates: Sequence[PipelineGate], patience_s: float | None
) -> list[GateLook]:
    """The last look: all is open, or the time is up. What a gate waits for is told where it is
    news."""
    end, news = None if patience_s is None else time.monotonic() + patience_s, News()
    while True:
        looked = look_at(settings, gates)
        if not any(each.shut for each in looked):
            return looked
        for line in (line for each in looked for line in news.of(each.shut)):
            _tell(line)
        if end is not None and time.monotonic() >= end:
            return looked
        left = LOOK_EVERY_S if end is None else end - time.monotonic()
        time.sleep(max(0.0, min(LOOK_EVERY_S, left)))


def _tell(line: str) -> None:
    print(f"binlogd: {line}", file=sys.stderr, flush=True)


def _print(tables: Sequence[str], through_ms: int, looked: Sequence[GateLook]) -> None:
    for source, at in (pair for each in looked for pair in sorted(each.begins.items())):
        print(f"binlogd: {source}: {BEGAN.format(at)}", file=sys.stderr)
    of = next((f", in cut {each.cut}" for each in looked if each.cut is not None), "")
    print(f"{', '.join(tables)}: complete through {time_text(through_ms)}{of}")


def _document(
    tables: Sequence[str], through_ms: int, looked: Sequence[GateLook], shut: Mapping[str, str]
) -> dict[str, Any]:
    ends = {str(source): end for each in looked for source, end in sorted(each.ends.items())}
    begins = {str(source): at for each in looked for source, at in sorted(each.begins.items())}
    return {
        "complete": not shut,
        "through_ms": through_ms,
        "tables": {name: shut.get(name) for name in tables},
        "ends": ends,
        "begins": begins,
        "cut": next((each.cut for each in looked if each.cut is not None), None),
    }

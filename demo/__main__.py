"""``python -m demo``: a change stream in a real broker becomes tables in a lake, and it is proved.

Starts the dev broker, produces the shop's stream into one partition, runs the daemon until it has
caught up, reads every table back and compares it row by row with the shop's own state.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import pyarrow as pa

from actors.runtime.jars import JarsError
from actors.runtime.java import CHECKOUT, VAR, JavaMissing
from actors.runtime.programs import ProgramError
from changes.model.errors import SinkUnavailable
from databases.base.errors import DatabaseError
from demo.broker import BrokerError, DevBroker
from demo.compare import compare_all
from demo.expected import expected_tables, keys_of
from demo.lakes import CHANGES, LAKES, DemoLake
from demo.produce import ProduceError, create_topic, produce
from demo.shop import Shop
from demo.steps import Steps, TooLong
from sparkwriter.session.java_api import JavaFailure, reason

TOPIC = "shop"
_ALL_WITHIN_S = 600.0
_DRAIN_WITHIN_S = 20.0
"""What a daemon gets to end by itself once the demo gave it up, before it is killed."""


class DemoFailed(Exception):
    """What went wrong, a line or several."""


def _say(text: str) -> None:
    print(f"demo: {text}", flush=True)


def run(var: Path, config: Path | None, changes: int, seed: int, lake_name: str) -> str:
    """Run the whole demo in a folder that is made anew; gives the last line's text.

    ``config``: another configuration than the lake's own.

    Raises DemoFailed, and what the steps raise. Main thread only.
    """
    steps = Steps(_ALL_WITHIN_S, _say)
    shutil.rmtree(var, ignore_errors=True)
    var.mkdir(parents=True)
    shop = Shop(changes, seed)
    with ExitStack() as servers:
        with steps.step("the broker is up", 90):
            broker = servers.enter_context(DevBroker(var / "broker"))
        lake = servers.enter_context(LAKES[lake_name](var))
        with steps.step(f"{changes:,} changes of {len(shop.live)} tables produced", 180):
            create_topic(broker.bootstrap, TOPIC)
            offsets = produce(broker.bootstrap, TOPIC, shop, _progress(changes))
        with steps.step("the daemon has caught up", 450):
            _run_daemon(var, config or lake.config, broker.bootstrap, lake.environment)
        applied, seconds = caught_up(var / "log" / "binlogd.log")
        broker.stop()
        with steps.step("every table read back", 150):
            found = _read_back(lake)
    with steps.step("compared row by row", 100):
        differences = compare_all(expected_tables(shop, offsets), found, keys_of(shop))
    if applied != changes:
        differences.append(f"the daemon counted {applied} changes, {changes} were produced")
    if differences:
        raise DemoFailed("\n".join(differences))
    rate = round(changes / seconds) if seconds > 0 else 0
    return f"OK, {changes} changes, {len(found)} tables equal, {rate} rows/s"


def _progress(changes: int) -> Callable[[int], None]:
    """Give what draws the producer's progress on a terminal, on one line."""

    def draw(sent: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if sent >= changes else ""
            print(f"\rproducing {sent:,} of {changes:,} changes", end=end, file=sys.stderr)

    return draw


def _run_daemon(var: Path, config: Path, bootstrap: str, environment: Mapping[str, str]) -> None:
    """Run the daemon until it ends; raises DemoFailed when it ends badly.

    Whatever interrupts the waiting, the daemon is ended before this returns.
    """
    command = [
        sys.executable, "-m", "daemon.cli", "run",
        "--until-caught-up", "--progress", "--config", str(config),
    ]  # fmt: skip
    environ = os.environ | {"BINLOGD_BROKER": bootstrap, "BINLOGD_VAR": str(var), **environment}
    daemon = subprocess.Popen(command, cwd=CHECKOUT, env=environ, stdin=subprocess.DEVNULL)
    try:
        code = daemon.wait()
    except BaseException:
        daemon.terminate()
        try:
            daemon.wait(_DRAIN_WITHIN_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        raise
    if code:
        raise DemoFailed(f"the daemon ended with code {code}; see {var / 'log' / 'binlogd.log'}")


def caught_up(log: Path) -> tuple[int, float]:
    """Read from the daemon's log what it applied until it had caught up: changes, seconds.

    Raises DemoFailed when the log doesn't tell.
    """
    told = None
    if log.exists():
        for line in log.read_text().splitlines():
            if '"caught_up"' in line:
                event = json.loads(line)
                if event.get("event") == "caught_up":
                    told = event
    if told is None:
        raise DemoFailed(f"the daemon ended without having caught up; see {log}")
    return int(told["changes"]), float(told["seconds"])


def _read_back(lake: DemoLake) -> dict[str, pa.Table]:
    try:
        return lake.read()
    except JavaFailure as problem:
        raise DemoFailed(f"the tables can't be read back: {reason(problem)}") from problem
    except DatabaseError as problem:
        raise DemoFailed(f"the tables can't be read back: {problem}") from problem


def _sizes() -> str:
    return ", ".join(f"{changes} for {lake}" for lake, changes in CHANGES.items())


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise DemoFailed(f"interrupted by {signal.Signals(number).name}")


def main() -> int:
    """Run the demo; 0 when every table is equal, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--changes", type=int, help=f"row changes ({_sizes()})")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another stream")
    parser.add_argument("--var", type=Path, default=VAR / "demo", help="made anew")
    parser.add_argument(
        "--lake", "--sink", choices=LAKES, default="folder", help="where the tables are"
    )
    parser.add_argument("--config", type=Path, help="another than the lake's own")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    try:
        var = options.var.absolute()
        changes = options.changes or CHANGES[options.lake]
        _say(run(var, options.config, changes, options.seed, options.lake))
    except (
        DemoFailed, TooLong, BrokerError, ProduceError, JarsError, JavaMissing, ProgramError,
        SinkUnavailable,
    ) as problem:  # fmt: skip
        print(f"demo: FAILED\n{problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

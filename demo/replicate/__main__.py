"""``python -m demo.replicate``: from a database to equal tables with one command.

A real database with rows that nothing follows yet, and a session that changes them all the time.
Its user gets the rights that the command tells, by the statements that it tells. Then the command
alone loads, compares and follows, while collector, broker, database and the command itself are
killed. At the end the demo reads both sides itself.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from actors.runtime.jars import JarsError
from actors.runtime.java import VAR, JavaMissing
from actors.runtime.programs import ProgramError
from demo.__main__ import DemoFailed, _interrupted
from demo.lake import open_session
from demo.replicate.changes import Changes
from demo.replicate.command import Replicate
from demo.replicate.compare import differences
from demo.replicate.source import DATABASE, KEYS, PASSWORD, SOURCES, Source
from demo.steps import Steps, TooLong
from sparkwriter.session.java_api import JavaFailure

_ALL_WITHIN_S = 3000.0
_ROUNDS = 4
"""Of statements: a publication is told once tables may be published."""

BETWEEN_S = 8.0
"""Between two kills: the part that was killed is on its way back by then, or just there."""


def _say(text: str) -> None:
    print(f"demo: {text}", flush=True)


def run(kind: str, var: Path, rows: int, per_s: float, seed: int) -> str:
    """Run the whole demo in a folder that is made anew; gives the last line's text.

    Raises DemoFailed, and what the steps raise. Main thread only.
    """
    steps = Steps(_ALL_WITHIN_S, _say)
    shutil.rmtree(var, ignore_errors=True)
    var.mkdir(parents=True)
    var.chmod(0o755)  # PostgreSQL runs as a user of its own
    with ExitStack() as stack:
        source = Source(kind, var)
        with steps.step(f"{kind} is up, with {rows:,} rows in {len(KEYS)} tables", 400):
            source.start()
            stack.callback(source.kill)
            source.create(rows)
        password = var / "password"
        password.write_text(PASSWORD)
        command = Replicate(var / "replica", source.url, password, "--tables", f"{DATABASE}.*")
        stack.enter_context(command)
        with steps.step("its user has the rights that the command tells", 200):
            _grant(source, command)
        changes = Changes(source, rows, per_s, seed)
        changes.start()
        _say(f"{per_s:,.0f} changes/s from here on")
        command.start()
        with steps.step("the first table is equal", 600):
            first = float(command.await_line(r"first table is equal after (\d+) s")[1])
        _killed(steps, source, command)
        with steps.step("all tables are equal", 1200):
            command.await_line(r"all \d+ tables equal")
        done = changes.stop()
        _compare(steps, source, command, var)
    return f"OK, {rows} rows loaded, {done} changes, {len(KEYS)} tables equal, " + (
        f"first table after {first:.0f} s"
    )


def _compare(steps: Steps, source: Source, command: Replicate, var: Path) -> None:
    """End it once all changes are there, and read both sides. Raises DemoFailed."""
    with ExitStack() as stack:
        with steps.step("what was changed last is there", 300):
            source.run([f"INSERT INTO {DATABASE}.marks VALUES (1)"])
            session = open_session(var / "reader", _catalog(var / "replica" / "lake"))
            stack.callback(session.stop)
            _await_mark(session)
        with steps.step("Ctrl-C ends it in good order", 200):
            command.stop()
        with steps.step("both sides are read and compared", 600):
            wrong = list(differences(source, session))
    if wrong:
        raise DemoFailed("\n".join(wrong))


def _grant(source: Source, command: Replicate) -> None:
    """Run what is told until nothing lacks."""
    for _ in range(_ROUNDS):
        status, plan = command.plan()
        lacking = [*plan["lacks"], *(why for table in plan["left_out"] for why in table["why"])]
        for one in lacking:
            source.run(one["statements"])
        if status == 0 and not lacking:
            return
    raise DemoFailed(f"after all told statements it still lacks {lacking}")


def _killed(steps: Steps, source: Source, command: Replicate) -> None:
    """Each part in turn, while rows are loaded."""
    pause = threading.Event()
    for part in ("collector", "broker"):
        with steps.step(f"kill -9 of the {part}", 60):
            command.kill_part(part)
            pause.wait(BETWEEN_S)
    with steps.step("kill -9 of the database", 120):
        source.kill()
        source.start()
        pause.wait(BETWEEN_S)
    with steps.step("kill -9 of the daemon; the same command goes on", 60):
        command.kill()
        command.start()


def _catalog(lake: Path) -> dict[str, str]:
    """As ``binlogd replicate`` makes it."""
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{lake / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        "warehouse": str(lake),
    }


def _await_mark(session: SparkSession) -> None:
    """The mark is the last transaction: all that was before it is in the log."""
    name, pause = f"lake.{DATABASE}.marks", threading.Event()
    while True:
        try:
            session.sql(f"REFRESH TABLE {name}")
            if session.table(name).count():
                return
        except JavaFailure:
            pass  # there is no such table yet: its first row makes it
        pause.wait(1.0)


def main() -> int:
    """Run the demo; 0 when every table is equal, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo.replicate", description=__doc__)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of all tables")
    parser.add_argument("--per-second", type=float, default=500.0, help="changes meanwhile")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other changes")
    parser.add_argument("--var", type=Path, default=VAR / "demo-replicate")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    try:
        var = options.var.absolute()
        _say(run(options.source, var, options.rows, options.per_second, options.seed))
    except (DemoFailed, TooLong, JarsError, JavaMissing, ProgramError) as problem:
        print(f"demo: FAILED\n{problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

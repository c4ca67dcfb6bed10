"""``python -m demo.load``: tables that were there before their stream are loaded beside it, and it
is proved that they are equal.

MariaDB gets eight tables, and a session that changes them all the time. The daemon loads them, is
killed in the middle, and one table gets a statement that can't be followed. Then all are verified.
In the second part ten differences are planted in the lake, found, and repaired.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from actors.runtime.jars import JarsError
from actors.runtime.java import VAR, JavaMissing
from actors.runtime.programs import ProgramError
from demo.__main__ import DemoFailed, _interrupted
from demo.broker import BrokerError, DevBroker
from demo.lake import embedded, open_session
from demo.load.daemon import Daemon, write_config
from demo.load.mariadb import mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import ProduceError, create_topic
from demo.steps import Steps, TooLong
from sparkwriter.session.java_api import JavaFailure

TOPIC = "shop"
_ALL_WITHIN_S = 2700.0
_ATTEMPTS = 20

UNFOLLOWED = "orders_3"
"""The table that gets a column whose values in stored rows no stream tells."""

PLANTED = (
    "DELETE FROM {t}orders_0 WHERE id = 101",
    "INSERT INTO {t}orders_0 (id, name) VALUES (-1, 'nobody')",
    "UPDATE {t}orders_1 SET name = 'stale', qty = -1 WHERE id = 102",
    "UPDATE {t}orders_1 SET note = concat(note, ' ') WHERE id = 103",
    "UPDATE {t}orders_2 SET price = price + 0.01 WHERE id = 104",
    "UPDATE {t}orders_2 SET made = made + INTERVAL '0.000001' SECOND WHERE id = 105",
    "UPDATE {t}orders_4 SET name = note, note = name WHERE id = 106",
    "UPDATE {t}orders_5 SET note = NULL WHERE id = 19",
    "UPDATE {t}codes SET code = 'CODE 107' WHERE code = 'Code 107'",
    "UPDATE {t}parts SET qty = qty + 1 WHERE id = 108",
)
"""Ten, of which the changed key makes two rows that differ."""

ROWS_PLANTED = 11


def _say(text: str) -> None:
    print(f"demo: {text}", flush=True)


def run(var: Path, rows: int, per_s: float, seed: int) -> str:
    """Run the whole demo in a folder that is made anew; gives the last line's text.

    Raises DemoFailed, and what the steps raise. Main thread only.
    """
    steps = Steps(_ALL_WITHIN_S, _say)
    shutil.rmtree(var, ignore_errors=True)
    var.mkdir(parents=True)
    with ExitStack() as stack:
        with steps.step("the broker and MariaDB are up", 90):
            broker = stack.enter_context(DevBroker(var / "broker"))
            server = stack.enter_context(mariadb(var / "mariadb"))
            create_topic(broker.bootstrap, TOPIC)
        with steps.step(f"{rows:,} rows in {len(TABLES)} tables, in no stream", 240):
            create(server, rows)
        config = write_config(var, server.port)
        changes = Changes(server, broker.bootstrap, TOPIC, rows, seed)
        changes.per_s = per_s
        changes.start()
        _say(f"{per_s:,.0f} changes/s from here on, by our own writer in Canal's form")
        with Daemon(var, config, broker.bootstrap) as daemon:
            with steps.step("the daemon runs", 120):
                daemon.start()
            begun = time.monotonic()
            with steps.step("a third is loaded; kill -9", 400):
                job = daemon.begin_load([f"{DATABASE}.{table}" for table in TABLES])
                daemon.await_rows(job, rows // 3)
                daemon.kill()
                daemon.start()
            with steps.step("all tables are loaded", 900):
                daemon.await_job(job)
            rate = round(rows / (time.monotonic() - begun))
            again = f"{UNFOLLOWED} can't follow a statement and is loaded again by itself"
            with steps.step(again, 400):
                column = f"ALTER TABLE {UNFOLLOWED} ADD COLUMN twice INT DEFAULT (qty * 2 % 1000)"
                changes.state(UNFOLLOWED, column)
                daemon.reloaded(f"lake.{DATABASE}.{UNFOLLOWED}")
            equal = _proved(steps, daemon, changes, var)
            done = changes.stop()
    return f"OK, {rows} rows loaded, {done} changes, {equal} tables verified equal, {rate} rows/s"


def _proved(steps: Steps, daemon: Daemon, changes: Changes, var: Path) -> int:
    """Verify all tables, have planted differences found and repaired; how many tables are equal."""
    everything = f"lake.{DATABASE}.*"
    changes.per_s /= 5
    with steps.step("all tables are verified", 700):
        verified = daemon.verified(everything)
        _check_equal(verified)
    with steps.step(f"{len(PLANTED)} differences are planted, found and repaired", 800):
        with changes.held():
            _plant(var)
        _check_repaired(daemon.verified(everything, "--repair"))
    with steps.step("all tables are verified once more", 700):
        _check_equal(daemon.verified(everything))
    return sum(table["equal"] for table in verified["tables"])


def _check_equal(result: dict[str, object]) -> None:
    if not result["equal"]:
        raise DemoFailed(json.dumps(result, ensure_ascii=False, indent=1))


def _check_repaired(result: dict[str, object]) -> None:
    if (result["differing"], result["repaired"]) != (ROWS_PLANTED, ROWS_PLANTED):
        raise DemoFailed(json.dumps(result, ensure_ascii=False, indent=1))


def _plant(var: Path) -> None:
    """Change the lake behind the daemon's back."""
    session = open_session(var, embedded(var))
    try:
        for sql in PLANTED:
            _done(session, sql.format(t=f"lake.{DATABASE}."))
    finally:
        session.stop()


def _done(session: SparkSession, sql: str) -> None:
    """Run a statement again where the daemon has written the table meanwhile."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            session.sql(sql)
        except JavaFailure:
            if attempt == _ATTEMPTS:
                raise
            threading.Event().wait(1.0)
        else:
            return


def main() -> int:
    """Run the demo; 0 when every table is equal, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo.load", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of all tables")
    parser.add_argument("--per-second", type=float, default=1000.0, help="changes meanwhile")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other changes")
    parser.add_argument("--var", type=Path, default=VAR / "demo-load")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    try:
        _say(run(options.var.absolute(), options.rows, options.per_second, options.seed))
    except (
        DemoFailed, TooLong, BrokerError, ProduceError, JarsError, JavaMissing, ProgramError,
    ) as problem:  # fmt: skip
        print(f"demo: FAILED\n{problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

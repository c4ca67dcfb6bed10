"""``python -m bench.scaling``: the figures of docs/scaling.md, measured again in some minutes.

Figures go to ``var/scaling.json`` too, with the machine's load: on a busy one only processor time
says something.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table as Lines

from actors.runtime.java import CHECKOUT, find_java
from bench.scaling import commits, cores
from bench.scaling.fleet import Fleet, Run
from bench.scaling.model import CORES, Costs, Load, costs_of, first_sizes, needs
from demo.broker import DevBroker
from demo.servers.rest import RestCatalog
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.session import start_session
from tests.lake.lakes import LAKES
from tests.lake.servers.postgresql import CatalogDatabase
from tests.lake.sessions import CONF, jars_for
from tests.live.program import Program

FEW, MANY, ROUNDS = 8, 160, 3
"""Tables, and how often messages are sent and waited for."""

SCREEN = Console(width=120)


def main() -> int:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__)
    parser.add_argument("--messages", type=int, default=120_000, help="of each round")
    parser.add_argument("what", nargs="*", help="of: sizes commits fleet cores")
    asked = parser.parse_args()
    what = asked.what or ["sizes", "commits", "fleet", "cores"]
    found: dict[str, object] = {"load": os.getloadavg()}
    if "sizes" in what:
        show("from which size a job wins", ("", *map(str, CORES)), size_lines())
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        if "commits" in what:
            found["commits"] = measured_commits(Path(folder))
        if "fleet" in what:
            found["fleet"] = measured_fleet(Path(folder), asked.messages)
        if "cores" in what:
            found["cores"] = rates = cores.measure(Path(folder), 4 * asked.messages)
            lines = [(str(number), f"{rate:,.0f}") for number, rate in rates.items()]
            show("one daemon, nothing written", ("cores", "changes/s"), lines)
    found["load_after"] = os.getloadavg()
    path = CHECKOUT / "var" / "scaling.json"
    path.write_text(json.dumps(found, indent=1))
    SCREEN.print(f"load {found['load']}; see {path}")
    return 0


def size_lines() -> Iterable[Sequence[str]]:
    """One line a question."""
    for name, sizes in first_sizes():
        yield name, *("never" if size is None else f"{size:,}" for size in sizes)


def measured_commits(folder: Path) -> dict[str, list[dict[str, float]]]:
    """A REST catalog over SQLite, and a catalog in PostgreSQL; the warehouse is a folder."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    warehouse = str(folder / "warehouse")
    with RestCatalog(folder / "rest", warehouse, {}) as rest, CatalogDatabase() as database:
        postgresql = {
            "type": "jdbc", "uri": database.uri, "jdbc.schema-version": "V1",
            "jdbc.user": "postgres", "warehouse": f"{warehouse}-pg",
        }  # fmt: skip
        catalogs = {"rest": {"type": "rest", "uri": rest.uri}, "pg": postgresql}
        with LAKES["postgresql-s3"](folder / "jars") as lake:
            jars = jars_for(lake)
        places = folder / "jvm.log", folder / "jvm"
        spark = start_session(CONF, "local[2]", jars, catalogs, *places)
        try:
            servers = {"rest": rest.program, "pg": database.server.program}
            rates = {
                name: commits.measure(spark, name, root(program))
                for name, program in servers.items()
            }
            history = [
                (name, *told) for name in servers for told in commits.by_history(spark, name)
            ]
        finally:
            SparkJvm(spark).stop(10.0)
    lines = (
        (name, str(rate.writers), f"{rate.a_second:.0f}", f"{rate.server_cpu_ms:.1f}")
        for name, those in rates.items()
        for rate in those
    )
    show("commits", ("catalog", "writers", "a second", "server's processor ms"), lines)
    lines = ((name, str(n), f"{1000 * s:.0f}", f"{size:,}") for name, n, s, size in history)
    show("commits into a table of so many snapshots", ("catalog", "", "ms", "bytes"), lines)
    return {name: [asdict(rate) for rate in those] for name, those in rates.items()}


def root(program: Program) -> int:
    """The process below which a server runs."""
    assert program._leash is not None
    return program._leash.pid


def measured_fleet(folder: Path, messages: int) -> dict[str, object]:
    """Four daemons, then two, then one; the model from the runs of one, and what it says."""
    with LAKES["rest-folder"](folder / "lake") as lake, DevBroker(folder / "broker") as broker:
        fleet = Fleet(lake, broker, folder)
        runs: list[Run] = []
        try:
            fleet.start()
            for count in (4, 2, 1):
                fleet.leave(count)
                runs += both(fleet, messages)
            idle_s, parts = fleet.idle(), fleet.parts()
        finally:
            fleet.daemons.close()
    costs = costs_of([run for run in runs if run.daemons == 1], idle_s)
    show_runs(runs, costs)
    show_model(costs)
    return {"runs": [asdict(run) for run in runs], "costs": asdict(costs), "parts": parts}


def both(fleet: Fleet, messages: int) -> list[Run]:
    """Few tables, thus few large writes; and many. Each JVM has compiled what it runs by then."""
    few, many = (FEW, messages), (MANY, messages // 16)
    for tables, each in (many, few, many):
        fleet.load(tables, each, 1)
    return [fleet.load(*few, ROUNDS), fleet.load(*many, ROUNDS)]


def show_runs(runs: Sequence[Run], costs: Costs) -> None:
    """What was measured, beside what the model says."""
    head = ("daemons", "tables", "messages", "writes", "clock s", "processor s", "main", "JVM",
            "children", "model says", "s per million")  # fmt: skip
    lines = (
        (str(r.daemons), str(r.tables), f"{r.messages:,}", str(r.writes), f"{r.clock_s:.1f}",
         f"{r.cpu_s:.1f}", f"{r.main_s:.1f}", f"{r.jvm_s:.1f}", f"{r.children_s:.1f}",
         f"{costs.predicted(r):.1f}", f"{1e6 * r.cpu_s / r.messages:.1f}")
        for r in runs
    )  # fmt: skip
    show("runs", head, lines)
    for run in runs:
        if run.daemons == 1:
            most = sorted(run.threads.items(), key=lambda one: -one[1])[:24]
            lines = ((name, f"{s:.2f}", f"{1e6 * s / run.messages:.2f}") for name, s in most)
            show(f"one daemon, {run.tables} tables", ("thread or part", "s", "µs a message"), lines)


def show_model(costs: Costs) -> None:
    """Carried on to a hundred daemons."""
    SCREEN.print(costs)
    head = ("daemons", "changes/s", "tables", "written every", "cores", "lock", "commits/s")
    loads = [
        Load(daemons, rate, tables, every)
        for daemons, rate in ((1, 50_000), (4, 200_000), (20, 500_000), (100, 1_000_000))
        for tables, every in ((100, 1.0), (1000, 1.0), (1000, 10.0), (1000, 60.0))
    ]
    lines = []
    for load in loads:
        need = needs(costs, load)
        lines.append((
            str(load.daemons), f"{load.changes_a_second:,.0f}", str(load.tables),
            f"{load.written_every_s:.0f} s", f"{need.cores:.1f}", f"{need.lock:.2f}",
            f"{need.commits_a_second:.0f}",
        ))  # fmt: skip
    show("model", head, lines)


def show(title: str, head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """A table on the screen."""
    table = Lines(*head, title=title)
    for line in lines:
        table.add_row(*line)
    SCREEN.print(table)


if __name__ == "__main__":
    sys.exit(main())

"""``binlogd check-config --connect`` on configurations of lakes, as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from actors.runtime.java import CHECKOUT

NO_BROKER = "127.0.0.1:1"
"""Nobody listens there: the sinks are what is tried."""


def configuration(
    catalogs: Mapping[str, Mapping[str, str]],
    folder: Path,
    targets: Mapping[str, str] | None = None,
    bootstrap: str = NO_BROKER,
    log: Mapping[str, str] | None = None,
) -> Path:
    """A file with a sink for each catalog. ``targets``: source tables to their targets."""
    sink = next(iter(catalogs))
    routes = targets or {"shop.*": f"{sink}.{{database}}.{{table}}"}
    tables: dict[str, Mapping[str, object]] = {
        "kafka": {"bootstrap.servers": bootstrap, "socket.connection.setup.timeout.ms": 1000},
        "daemon": {"state_dir": str(folder / "state"), "staging_dir": str(folder / "staged")},
        "log": log or {},
        "batch": {"max_age_s": 0.2},
        "spark": {"master": "local[2]", "warm_up": False},
        "spark.conf": {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"},
    }
    for name, properties in catalogs.items():
        tables[f"sink.{name}"] = {"kind": "iceberg"}
        tables[f"sink.{name}.catalog"] = properties
    tables["pipeline.shop"] = {"topics": ["shop"], "format": "canal-json"}
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()]
    for source, target in routes.items():
        lines += ["[[pipeline.shop.route]]", f'tables = ["{source}"]', f'target = "{target}"']
    file = folder / "config.toml"
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o600)
    return file


def run_check(file: Path, environment: Mapping[str, str] | None = None) -> tuple[list[str], str]:
    """The problems that it names, without the broker that is not there; and all that it said."""
    command = [str(Path(sys.executable).with_name("binlogd")), "check-config", "--connect"]
    done = subprocess.run(
        [*command, "--config", str(file)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line.removeprefix("binlogd: ") for line in done.stderr.splitlines() if line]
    problems = [line for line in said if not line.startswith(("warning", "pipeline."))]
    return problems, done.stdout + done.stderr

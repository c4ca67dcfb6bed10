"""The daemon opens the lake by itself, with the jars that its configuration needs alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lake.lakes import Lake

pytestmark = [pytest.mark.lake, pytest.mark.integration]

BROKER = "127.0.0.1:1"
"""Nobody listens there: the sink is what is tried."""


def test_the_daemon_opens_the_lake(lake: Lake, spark_master: str, tmp_path: Path) -> None:
    """``check-config --connect`` starts Spark and asks the catalog; only the broker is missing."""
    file = tmp_path / "config.toml"
    file.write_text(configuration(lake, spark_master, tmp_path))
    file.chmod(0o600)
    command = [str(Path(sys.executable).with_name("binlogd")), "check-config", "--connect"]
    done = subprocess.run(
        [*command, "--config", str(file)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("binlogd: warning")]
    said = [line for line in said if line]
    assert len(said) == 1, said
    (no_broker,) = said
    assert f"no Kafka broker answers at {BROKER}" in no_broker
    assert "spark_started" in done.stdout


def configuration(lake: Lake, master: str, folder: Path) -> str:
    """A configuration of one pipeline into the lake."""
    tables: dict[str, Mapping[str, Any]] = {
        "kafka": {"bootstrap.servers": BROKER, "socket.connection.setup.timeout.ms": 1000},
        "daemon": {
            "state_dir": str(folder / "state"),
            "staging_dir": str(folder / "staged") if master.startswith("local") else lake.staging,
        },
        "spark": {"master": master},
        "spark.conf": {"spark.executor.memory": "900m", **lake.conf},
        "sink.lake": {"kind": "iceberg"},
        "sink.lake.catalog": lake.catalog,
        "pipeline.shop": {
            "topics": ["shop"],
            "format": "canal-json",
            "include": ["shop.*"],
            "target": "lake.{database}.{table}",
        },
    }
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"

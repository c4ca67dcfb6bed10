"""A daemon with two pipelines into one SQLite file, and the Prometheus that watches it."""

from __future__ import annotations

import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from actors.runtime.programs import free_port
from tests.certificates import self_signed
from tests.deploy.prometheus_server import Prometheus
from tests.integration.rig import Rig, canal
from tests.integration.test_process import CHECKOUT, daemon

RULES = CHECKOUT / "deploy/prometheus/binlogd.rules.yml"
KEPT_S = 60
"""Retention of the topic: half of it is over after half a minute of lag."""

CONFIG = """
[daemon]
state_dir = "{folder}/state"
staging_dir = "{folder}/staging"
commit_interval_s = 0.3
processors = 1
[log]
format = "json"
file = "{log}"
[batch]
max_age_s = 0.2
[metrics]
listen = "127.0.0.1:{port}"
[events]
file = "events.jsonl"
[kafka]
"bootstrap.servers" = "{broker}"
"ssl.certificate.location" = "{soon}"
[sink.copy]
kind = "sqlite"
path = "{file}"
[pipeline.p]
topics = ["{topic}"]
format = "canal-json"
group = "g-{db}"
include = ["{db}.*"]
target = "copy.{{database}}.{{table}}"
on_bad_record = "dead-letter"
on_refused_target = "quarantine"
"""

SECOND = """
[pipeline.q]
topics = ["{other}"]
format = "canal-json"
group = "g-{db}-q"
include = ["other.*"]
target = "copy.other.{{table}}"
"""


def certificate(path: Path, days: float) -> Path:
    """A self-signed certificate that ends so many days from now."""
    path.write_bytes(self_signed(datetime.now(UTC), days))
    return path


class World:
    """Two pipelines into one SQLite file, and the Prometheus that watches their daemon."""

    def __init__(self, rig: Rig, *, single: bool = False) -> None:
        """``single``: the first pipeline alone, which stops at a bad record."""
        self.rig, self.single = rig, single
        self.admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
        self.other = f"{rig.topic}-q"
        rig.create_topic(self.other)
        self.keep_for(KEPT_S)
        self.port = free_port()
        self.file = rig.folder / "copy.db"
        self.config = self._write_config()
        self.prometheus = Prometheus(rig.folder, RULES, self.port)
        self.daemon: subprocess.Popen[str] | None = None
        self.rows = 0

    def keep_for(self, seconds: int) -> None:
        """Set the retention of the first pipeline's topic."""
        resource = ConfigResource(
            ConfigResource.Type.TOPIC,
            self.rig.topic,
            incremental_configs=[
                ConfigEntry(
                    "retention.ms",
                    str(seconds * 1000),
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        self.admin.incremental_alter_configs([resource])[resource].result(20)

    def _write_config(self) -> Path:
        folder = self.rig.folder
        text = CONFIG.replace('on_bad_record = "dead-letter"\n', "") if self.single else CONFIG
        text = (text if self.single else text + SECOND).format(
            folder=folder,
            port=self.port,
            log=self.rig.log_file,
            broker=self.rig.broker.bootstrap,
            soon=certificate(folder / "soon.pem", 1),
            file=self.file,
            topic=self.rig.topic,
            other=self.other,
            db=self.rig.db,
        )
        path = folder / "config.toml"
        path.write_text(text)
        return path

    def start(self) -> None:
        """Start the daemon."""
        self.daemon = daemon("run", "--config", str(self.config))

    def stop(self) -> None:
        """End it as an operator does."""
        assert self.daemon is not None
        self.daemon.terminate()
        self.daemon.communicate(timeout=120)
        self.daemon = None

    def insert(self, table: str = "t", **more: Any) -> None:
        """One more row."""
        self.rows += 1
        row = {"id": self.rows, "name": "x", "qty": self.rows}
        self.rig.produce(canal(f"{self.rig.db}.{table}", "INSERT", [row], **more))

    def sql(self, statement: str) -> None:
        """What somebody does to the target by hand."""
        with sqlite3.connect(self.file, timeout=60) as file:
            file.execute(statement)
        file.close()

    def dead_letters(self) -> None:
        """The operator has bad records stored apart."""
        self.config.write_text(f'{self.config.read_text()}on_bad_record = "dead-letter"\n')

    def command(self, *arguments: str) -> None:
        """A command of an operator's, which succeeds."""
        process = daemon(*arguments, "--config", str(self.config))
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said

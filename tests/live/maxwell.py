"""Maxwell as a reader of MariaDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.live.jars import classpath, jars_of
from tests.live.processes import Processes
from tests.live.program import HOST
from tests.live.sources import Source

_UNKNOWN = "not in Maxwell's grammar of statements: it ends itself"


class Maxwell(Processes):
    """Its places in the log are in the database itself."""

    name = "Maxwell"
    section: Mapping[str, Any] = {"format": "maxwell-json"}
    left_out: Mapping[str, str] = {
        "truncate": "Maxwell does not tell of TRUNCATE",
        "partitions": "nor of partitions that are emptied",
    }
    unread: Mapping[str, str] = {
        r"\bJSON\b": "it takes MariaDB's texts for MySQL's binary documents, and ends itself",
        r"ADD COLUMN IF NOT EXISTS|ALTER TABLE IF EXISTS|^SET STATEMENT|\bWAIT \d": _UNKNOWN,
        r"DEFAULT -?[0-9.]+e[-+]": f"{_UNKNOWN}: numbers with a signed exponent",
        r"^/\*M!": "it passes the statement over, and misses the new column",
    }

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(folder, bootstrap)
        self._path = classpath(jars_of("maxwell") / "maxwell")

    def command(self, name: str, topic: str, seed: int, source: Source) -> Sequence[str]:
        options = {
            "host": HOST, "port": source.port, "user": "live", "password": "live",
            "client_id": name, "replica_server_id": 500_000 + seed % 100_000,
            "producer": "kafka", "kafka.bootstrap.servers": self.bootstrap,
            "kafka_topic": topic, "ddl_kafka_topic": topic, "output_ddl": "true",
            "output_primary_key_columns": "true",
            "filter": f"exclude: *.*, include: /{source.prefix}{seed}_.*/.*",
            "jdbc_options": "useSSL=false&allowPublicKeyRetrieval=true",
        }  # fmt: skip
        return [
            "-Xmx256m", f"-Djava.io.tmpdir={self.folder}", "-cp", self._path,
            "com.zendesk.maxwell.Maxwell",
            *(f"--{option}={value}" for option, value in options.items()),
        ]  # fmt: skip

    def stuck(self, log: str) -> str:
        return ""  # it ends itself

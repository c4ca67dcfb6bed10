"""Maxwell as a reader of MariaDB."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.jars import classpath, jars_of
from tests.live.processes import Processes
from tests.live.program import HOST
from tests.live.sources import Source

_SCRIPT = "jdk/nashorn/api/scripting/ScriptObjectMirror"
"""Without this class, which no newer Java has, the first row ends Maxwell's producer."""
_PRODUCER = re.compile(r"Exception in thread \"maxwell-kafka-worker\".*?(?=\n\d|\Z)", re.DOTALL)
_UNKNOWN = "not in Maxwell's grammar of statements: it ends itself"


class Maxwell(Processes):
    """Its places in the log are in the database itself."""

    name = "Maxwell"
    format = "maxwell-json"
    left_out: Mapping[str, str] = {
        "truncate": "Maxwell does not tell of TRUNCATE",
        "partitions": "nor of partitions that are emptied",
    }
    unread: Mapping[str, str] = {
        r"\bJSON\b": "it takes MariaDB's texts for MySQL's binary documents, and ends itself",
        r"ADD COLUMN IF NOT EXISTS|ALTER TABLE IF EXISTS|^SET STATEMENT|\bWAIT \d": _UNKNOWN,
        r"DEFAULT -?[0-9.]+e[-+]": f"{_UNKNOWN}: numbers with a signed exponent",
        r"'(838|-838|-00):\d\d:": "times below zero and beyond a day: it shows another time of day",
        r"^/\*M!": "it passes the statement over, and misses the new column",
    }

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(folder, bootstrap)
        self._path = self.compiled(_SCRIPT, classpath(jars_of("maxwell") / "maxwell"))

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
        """It ends itself, but for its producer, whose end leaves the others waiting."""
        found = _PRODUCER.findall(log)
        return found[-1] if found else ""

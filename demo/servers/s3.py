"""An object store in memory that speaks S3: moto. It refuses If-Match and If-None-Match rightly."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.programs import HOST, ProgramMissing
from demo.servers.server import Server, ask

BUCKET = "lake"
REGION = "us-east-1"


class ObjectStore(Server):
    """A store with one bucket. Killed, it forgets everything."""

    name = "moto"

    def __init__(self, folder: Path, port: int = 0) -> None:
        if importlib.util.find_spec("moto") is None:
            raise ProgramMissing("moto", "it is not installed: run `make setup-lake`")
        super().__init__(folder, port)

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://{self.address}"

    def properties(self) -> Mapping[str, str]:
        """What S3FileIO needs to reach it; the keys are anybody's."""
        return {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": self.endpoint,
            "s3.path-style-access": "true",
            "s3.access-key-id": "tests",
            "s3.secret-access-key": "anybodys-key",
            "client.region": REGION,
        }

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]

    def answers(self) -> bool:
        return ask(f"{self.endpoint}/{BUCKET}", "PUT") is not None

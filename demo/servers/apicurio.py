"""Apicurio Registry: a schema registry that speaks Confluent's API, its schemas in a file of H2.

It needs Java 21 or newer, which Spark 4.1 is not tested with beyond 21: so it has a Java of its own
where the machine's default is older.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.java import JavaMissing, find_java, packaged_runtime
from actors.runtime.programs import HOST, ProgramMissing, free_port
from demo.servers.jars import FOLDER
from demo.servers.server import Server, ask, small_java

NAME = "apicurio"
OLDEST_JAVA = 21
_MAIN = "quarkus-run.jar"


class Apicurio(Server):
    """One registry. Its schemas outlive a kill; ``forget`` empties it."""

    name = NAME

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Nothing runs yet; raises ProgramMissing."""
        super().__init__(folder, port)
        self._java = _java()
        self._app = unpacked()
        self.environment = self._settings()

    @property
    def root(self) -> str:
        """Its address, below which are the two APIs."""
        return f"http://{self.address}"

    @property
    def confluent_url(self) -> str:
        """Where Confluent's API is: what clients of a Confluent registry are told."""
        return f"{self.root}/apis/ccompat/v7"

    @property
    def apicurio_url(self) -> str:
        """Where Apicurio's own API is, of the version that its converters of 2.6 speak."""
        return f"{self.root}/apis/registry/v2"

    def command(self) -> Sequence[str | Path]:
        return [*small_java(self._java), "-jar", self._app / _MAIN]

    def answers(self) -> bool:
        return ask(f"{self.confluent_url}/subjects") is not None

    def forget(self) -> None:
        """Remove all schemas, while it does not run: ids begin at one again."""
        for file in self.folder.glob("schemas.*"):
            file.unlink()

    def _settings(self) -> Mapping[str, str]:
        return {
            "QUARKUS_HTTP_HOST": HOST, "QUARKUS_HTTP_PORT": str(self.port),
            # By default this one listens on all interfaces.
            "QUARKUS_MANAGEMENT_HOST": HOST, "QUARKUS_MANAGEMENT_PORT": str(free_port()),
            # A write counts only when it is on disk, so that a kill takes no id back.
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.folder / 'schemas'};WRITE_DELAY=0",
        }  # fmt: skip


def _java() -> Path:
    try:
        own = packaged_runtime() or Path("/nonexistent")
        return find_java(own=own, fits=lambda version: version >= OLDEST_JAVA).java
    except JavaMissing as problem:
        why = f"it needs Java {OLDEST_JAVA} or newer: run `make setup-lake`"
        raise ProgramMissing(NAME, why) from problem


def unpacked(folder: Path = FOLDER) -> Path:
    """Give the folder of its program, unpacked where it is not yet; raises ProgramMissing."""
    archives = sorted((folder / NAME).glob("*/*.tar.gz"))
    if not archives:
        command = f"python -m demo.servers.jars fetch {NAME}"
        raise ProgramMissing(NAME, f"its program is not there: run `{command}`")
    app = folder / f"{NAME}-app" / archives[-1].name.removesuffix(".tar.gz")
    if not app.exists():
        fresh = app.with_name(f"{app.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        with tarfile.open(archives[-1]) as archive:
            archive.extractall(fresh, filter="data")
        fresh.replace(app)
    return app


def main() -> int:
    """Status 1 where there is no Java that runs it."""
    try:
        _java()
    except ProgramMissing:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""PostgreSQL for a catalog: the server of the live tests, with nothing in it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from actors.runtime.programs import HOST, ProgramError
from tests.live.postgres import Postgres
from tests.needs import missing


class CatalogDatabase:
    """A database for one catalog. It ends with this process. One thread's."""

    def __init__(self) -> None:
        # A folder that its own user reaches, where tests run as root.
        self._folder = Path(tempfile.mkdtemp(prefix="binlogd-postgresql-"))
        self._folder.chmod(0o755)
        try:
            self.server = Postgres(self._folder / "server")
        except ProgramError as problem:
            shutil.rmtree(self._folder)
            missing("postgresql", str(problem))

    @property
    def uri(self) -> str:
        """What the catalog's ``uri`` is; whoever asks is let in."""
        return f"jdbc:postgresql://{HOST}:{self.server.port}/postgres"

    def __enter__(self) -> CatalogDatabase:
        try:
            self.server.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.program.kill()
        shutil.rmtree(self._folder)

"""A lake as companies have it, on this machine: a REST catalog over an object store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from demo.servers.rest import RestCatalog
from demo.servers.s3 import BUCKET, ObjectStore

WAREHOUSE = f"s3://{BUCKET}/warehouse"


class S3Lake:
    """Both servers, their logs and the catalog's names in one folder. They end with this process.

    The store forgets all when it ends. One thread's.
    """

    def __init__(self, folder: Path, s3_port: int = 0, rest_port: int = 0) -> None:
        """Nothing runs yet. Port 0: any free one. Raises ProgramMissing."""
        self.store = ObjectStore(folder / "s3", s3_port)
        properties = self.store.properties()
        self.rest = RestCatalog(folder / "rest", WAREHOUSE, properties, rest_port)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start both. Raises ProgramError."""
        with ExitStack() as stack:
            stack.enter_context(self.store)
            stack.enter_context(self.rest)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def catalog(self) -> Mapping[str, str]:
        """The properties of the catalog, as a configuration has them."""
        return {"type": "rest", "uri": self.rest.uri, **self.store.properties()}

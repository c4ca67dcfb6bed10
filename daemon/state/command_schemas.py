"""The schemas that a command's records name: those of the state directory, else the registry's.

Whatever is fetched stays in a folder of this process: the daemon alone writes its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from changes.formats.wire.frames import needed
from changes.formats.wire.schemas import SchemaId
from changes.model.registry import Registry
from daemon.config.pipeline_config import UsedRegistry
from sources.registry.client import RegistryClient, open_client
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.keeper import SchemaStore


class CommandSchemas:
    """The schemas of one registry for one command. One thread's."""

    def __init__(self, used: UsedRegistry, folder: Path) -> None:
        self._name, self._section, self._kept = used
        self._folder, self._store = folder, SchemaStore(folder)
        self._seen: set[SchemaId] = set()
        self.registry: Registry = self._section.as_formats_see_it(folder)

    def fetch(self, packed: Iterable[bytes | None]) -> list[str]:
        """Have what packed records need. Returns a line for each schema that can't be had; each is
        looked for once."""
        new = sorted(needed(packed, self.registry) - self._seen)
        self._seen.update(new)
        missing = [each for each in new if not self._copied(each)]
        if not missing:
            return []
        try:
            client = open_client(self._section)
            return [line for each in missing for line in self._fetched(client, each)]
        except RegistryAway as error:
            schemas = ", ".join(map(str, missing))
            return [f"registry {self._name} gives no answer for schema {schemas}: {error}"]

    def _fetched(self, client: RegistryClient, identity: SchemaId) -> Iterator[str]:
        try:
            self._store.keep(identity, client.fetch(identity))
        except (SchemaNotFound, SchemaUnfit) as error:
            yield f"registry {self._name}: {error}"

    def _copied(self, identity: SchemaId) -> bool:
        try:
            copyfile(self._kept / identity.file_name, self._folder / identity.file_name)
        except OSError:  # not kept, or not for this user: the registry has it, too
            return False
        return True


@contextmanager
def command_schemas(used: UsedRegistry | None) -> Iterator[CommandSchemas | None]:
    """The schemas of a registry; None for records that name none."""
    if used is None:
        yield None
    else:
        with TemporaryDirectory(prefix="binlogd-schemas-") as folder:
            yield CommandSchemas(used, Path(folder))

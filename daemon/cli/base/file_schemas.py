"""The schemas that the messages of a file name: those of the state directory, else the registry's.

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
from daemon.config.config import Config
from sources.registry.client import open_client
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.keeper import SchemaStore


class FileSchemas:
    """The schemas of one registry for one command."""

    def __init__(self, config: Config, name: str, folder: Path) -> None:
        self._kept = config.schema_folder(name)
        self._section, self._name = config.registry[name], name
        self._folder = folder
        self.registry: Registry = self._section.as_formats_see_it(folder)

    def fetch(self, packed: Iterable[bytes]) -> Iterator[str]:
        """Have what packed records need. Yields a line for each schema that can't be had."""
        store = SchemaStore(self._folder)
        wanted = [each for each in sorted(needed(packed, self.registry)) if not store.usable(each)]
        missing = [each for each in wanted if not self._copied(each)]
        try:
            client = open_client(self._section) if missing else None
            for identity in missing:
                assert client is not None
                try:
                    store.keep(identity, client.fetch(identity))
                except (SchemaNotFound, SchemaUnfit) as error:
                    yield f"registry {self._name}: {error}"
        except RegistryAway as error:
            schemas = ", ".join(map(str, missing))
            yield f"registry {self._name} gives no answer for schema {schemas}: {error}"

    def _copied(self, identity: SchemaId) -> bool:
        try:
            copyfile(self._kept / identity.file_name, self._folder / identity.file_name)
        except OSError:  # not kept, or not for this user: the registry has it, too
            return False
        return True


@contextmanager
def file_schemas(config: Config, name: str) -> Iterator[FileSchemas]:
    """The schemas of a registry that the configuration has."""
    with TemporaryDirectory(prefix="binlogd-schemas-") as folder:
        yield FileSchemas(config, name, Path(folder))

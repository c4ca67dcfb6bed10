"""The schemas that a command's records name: those of the state directory, else the registry's.

Whatever is fetched stays in a folder of this process: the daemon alone writes its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from changes.formats.wire.frames import needed
from changes.formats.wire.schemas import SchemaId
from changes.model.registry import Registry
from daemon.config.pipeline_config import UsedRegistry
from sources.registry.client import open_client
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.keeper import SchemaStore


class CommandSchemas:
    """The schemas of one registry for one command. One thread's."""

    def __init__(self, used: UsedRegistry, folder: Path) -> None:
        self._name, self._section, self._kept = used
        self._folder, self._store = folder, SchemaStore(folder)
        self._lacking: dict[SchemaId, str] = {}
        """Why a schema can't be had, by those looked for; empty: it is there."""
        self.registry: Registry = self._section.as_formats_see_it(folder)

    def fetch(self, packed: Iterable[bytes | None]) -> list[str]:
        """Have what packed records need. Returns why their schemas can't be had, a line each; each
        schema is looked for once."""
        wanted = sorted(needed(packed, self.registry))
        new = [each for each in wanted if each not in self._lacking]
        self._lacking |= dict.fromkeys(new, "")
        if missing := [each for each in new if not self._copied(each)]:
            self._request(missing)
        return [line for line in dict.fromkeys(self._lacking[each] for each in wanted) if line]

    def _request(self, missing: Sequence[SchemaId]) -> None:
        try:
            with closing(open_client(self._section)) as client:
                for identity in missing:
                    try:
                        self._store.keep(identity, client.fetch(identity))
                    except (SchemaNotFound, SchemaUnfit) as error:
                        self._lacking[identity] = f"registry {self._name}: {error}"
        except RegistryAway as error:
            schemas = ", ".join(map(str, missing))
            line = f"registry {self._name} gives no answer for schema {schemas}: {error}"
            self._lacking |= dict.fromkeys(missing, line)

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

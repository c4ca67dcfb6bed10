"""The schema registries of the process: one keeper for each that a pipeline names."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from actors.contract.addresses import Address
from actors.contract.ports import Schemas
from daemon.config.config import Config
from settings.rotation import current_registry
from sources.registry.keeper import SchemaKeeper


class Registries:
    """The keepers, each started with the first pipeline that needs it. Any thread."""

    def __init__(self, config: Config, tell: Callable[[Address, object], None]) -> None:
        """``tell`` leaves a message for an actor."""
        self._config, self._tell = config, tell
        self._lock = threading.Lock()
        self._keepers: dict[str, SchemaKeeper] = {}

    def of(self, pipeline: str) -> Schemas | None:
        """The schemas of a pipeline's registry, None where it has none."""
        name = self._config.pipeline[pipeline].registry
        if name is None:
            return None
        with self._lock:
            keeper = self._keepers.get(name)
            if keeper is None:
                keeper = self._keepers[name] = self._make(name)
                keeper.start()
            return keeper

    def patience_s(self, pipeline: str) -> float:
        """How long a run that ends waits for a schema: longer than its registry's own grace, which
        ends with a more exact reason."""
        name = self._config.pipeline[pipeline].registry
        section = None if name is None else self._config.registry[name]
        return 0.0 if section is None else section.not_found_s + 2 * section.timeout_s

    def forget(self, user: Address) -> None:
        """An actor has ended."""
        with self._lock:
            keepers = list(self._keepers.values())
        for keeper in keepers:
            keeper.forget(user)

    def close(self) -> None:
        """Ask nothing more."""
        with self._lock:
            keepers = list(self._keepers.values())
        for keeper in keepers:
            keeper.close()

    def _make(self, name: str) -> SchemaKeeper:
        section = partial(current_registry, self._config, name)
        return SchemaKeeper(name, section, self._config.schema_folder(name), self._tell)

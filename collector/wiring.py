"""What a collector is given by the process around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.connect.clients import SECRET
from collector.connect.files import WorkerFiles
from collector.connect.rest import ConnectRest
from collector.connector.config import Flavor, Surroundings, connector_config
from collector.connector.section import CollectorSection
from databases.base.database import Database
from databases.base.section import DatabaseSection
from databases.base.url import Login
from sources.base.topics import CollectorTopics

_HISTORY = "schema.history.internal"


@dataclass(frozen=True, slots=True)
class Wiring:
    """One collector's. All calls come from one thread at a time.

    ``login`` has the password as it is now. ``clients``: Java's settings for the broker, secrets
    among them; raises UnfitSettings. ``rest``: Connect's API, None before the worker's first start.
    ``patterns``: of its tables. ``pipelines``: those that read it. ``load`` has tables loaded by
    patterns; it gives those whose loads could not be recorded, each with why.
    """

    name: str
    state_dir: Path
    section: CollectorSection
    database: DatabaseSection | None
    login: Callable[[], Login]
    open_database: Callable[[], Database]
    clients: Callable[[], Mapping[str, str]]
    rest: Callable[[], ConnectRest | None]
    topics: Callable[[], CollectorTopics]
    files: WorkerFiles
    patterns: Callable[[], tuple[str, ...]]
    pipelines: Callable[[], Sequence[str]]
    load: Callable[[Sequence[str]], Mapping[str, str]]
    truststore: Callable[[Login], str | None]

    def secrets(self) -> dict[str, str]:
        """What the connector needs and Connect must not show, by its option."""
        found = {"database.password": self.login().password or "", **self.section.secret_options()}
        for name, value in self.clients().items():
            if name in SECRET:
                found |= {f"{_HISTORY}.{c}.{name}": value for c in ("producer", "consumer")}
        return found

    def keep_secrets(self) -> bool:
        """Have the worker find them; whether they are others than before. Raises OSError."""
        if not self.section.is_embedded:
            return False
        self.files.open()
        return self.files.keep_secrets(self.name, self.secrets())

    def wanted(self, flavor: Flavor) -> dict[str, str]:
        """The connector's whole configuration."""
        login = self.login()
        if self.section.is_embedded:
            references = {one: self.files.reference(self.name, one) for one in self.secrets()}
        else:
            references = {one: f"${{{at}}}" for one, at in self.section.references.items()}
        clients = {
            name: value
            for name, value in self.clients().items()
            if name not in SECRET or self.section.is_embedded
        }
        around = Surroundings(
            self.name, flavor, login, self.included(), clients, references,
            publication=None if self.database is None else self.database.publication,
            truststore=self.truststore(login),
        )  # fmt: skip
        return connector_config(self.section, around)

    def included(self) -> tuple[str, ...]:
        """The patterns that the connector is given: within the database that a url of MySQL or
        MariaDB names."""
        found = self.patterns()
        address = None if self.database is None else self.database.address
        if address is None or address.kind != "mysql" or not address.database:
            return found
        inside = f"{address.database}.*"
        return tuple(inside if pattern in ("*", "*.*") else pattern for pattern in found)

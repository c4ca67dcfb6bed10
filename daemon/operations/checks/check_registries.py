"""The schema registries of a configuration: for its check and its plan."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.config.config import Config
from sources.registry.client import open_client
from sources.registry.errors import RegistryAway


def unusable_registries(config: Config) -> Iterator[str]:
    """Certificates and logins that this machine shows to be unusable."""
    for name, section in config.registry.items():
        try:
            open_client(section).close()
        except RegistryAway as error:
            yield f"registry.{name}: {error}"


def silent_registries(config: Config) -> Iterator[str]:
    """Ask each registry something that needs the right to read."""
    for name, section in config.registry.items():
        try:
            client = open_client(section)
            try:
                client.check()
            finally:
                client.close()
        except RegistryAway as error:
            yield f"registry.{name}: {error}"


def unused_registries(config: Config) -> Iterator[str]:
    """Registries that no pipeline reads: mostly one whose pipeline lacks its line."""
    used = {pipeline.registry for pipeline in config.pipeline.values()}
    for name in config.registry:
        if name not in used:
            yield f'registry.{name}: no pipeline names it: set registry = "{name}" where it is read'


def planned_registries(config: Config) -> Iterator[str]:
    """What is configured, without secrets."""
    for name, section in config.registry.items():
        used = [key for key, pipeline in config.pipeline.items() if pipeline.registry == name]
        of = f", of {', '.join(used)}" if used else ""
        kept = config.schema_folder(name)
        yield f"registry {name}: {', '.join(section.urls)} ({section.kind}){of}; kept in {kept}"

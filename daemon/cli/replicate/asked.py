"""What the options of ``binlogd replicate`` say, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from collector.checks.postgres import PUBLICATION
from daemon.cli.base.address import (
    BadAddress,
    DatabaseAddress,
    is_database,
    is_same_server,
    parse_address,
    patterns_of,
)
from daemon.cli.replicate.folder import Note
from databases.base.section import DatabaseSection


@dataclass(frozen=True, slots=True)
class Replication:
    """What the options say. ``target``: a database to write; else ``lake`` is the place."""

    source: DatabaseAddress
    into: str
    target: DatabaseAddress | None
    catalog: str
    patterns: tuple[str, ...]
    without: tuple[str, ...]
    named: tuple[str, ...]
    tls: str | None
    tls_ca: str | None
    broker: str | None

    def note(self, tables: dict[str, int]) -> Note:
        """What is written down of it."""
        return Note(str(self.source), self.into, self.named, tables)

    def section(self, publication: str | None) -> DatabaseSection:
        """The source's, without its password."""
        tls = cast(Literal["off", "required", "verified"] | None, self.tls)
        return DatabaseSection(
            url=self.source.url, user=self.source.user, publication=publication, tls=tls,
            tls_ca=self.tls_ca,
        )  # fmt: skip

    @property
    def publication(self) -> str | None:
        """PostgreSQL's."""
        return PUBLICATION if self.source.parts.kind == "postgresql" else None


def asked_for(
    source: str,
    into: str,
    tables: Sequence[str],
    folder: Path,
    catalog: str,
    tls: str | None,
    tls_ca: Path | None,
    broker: str | None = None,
) -> Replication:
    """Read them. Raises BadAddress."""
    address = parse_address(source, "the source")
    if tls not in (None, "off", "required", "verified"):
        raise BadAddress(f"--tls {tls}: off, required or verified")
    patterns, without = patterns_of(address, tables)
    target = parse_address(into, "--into") if is_database(into) else None
    if target is not None and _is_itself(address, target):
        raise BadAddress("--into: is the source itself: its tables would be written over")
    where = str(target) if target is not None else _place_of(into, folder)
    ca = None if tls_ca is None else str(tls_ca.absolute())
    named = tuple(tables)
    return Replication(address, where, target, catalog, patterns, without, named, tls, ca, broker)


def _is_itself(source: DatabaseAddress, target: DatabaseAddress) -> bool:
    """Targets have the names of their tables: in MySQL those of the source's databases."""
    if source.parts.kind != target.parts.kind or not is_same_server(source, target):
        return False
    return source.parts.kind == "mysql" or source.parts.database == target.parts.database


def _place_of(into: str, folder: Path) -> str:
    """A file or folder, as the configuration names it: from its own folder where it is below."""
    scheme, colon, rest = into.partition(":")
    if colon and scheme != "sqlite":
        return into
    home, path = folder.absolute(), Path(rest if colon else into).absolute()
    inside = path.relative_to(home) if path.is_relative_to(home) else path
    return f"sqlite:{inside}" if colon else str(inside)

"""The sink's part of a first configuration, told from one word: where the tables shall be. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from daemon.first_config.toml import quote

STORES = {"s3": "org.apache.iceberg.aws.s3.S3FileIO", "hdfs": ""}
"""Schemes of a lake that is not a folder, with Iceberg's class for its files, empty: the usual."""


class NotASink(Exception):
    """What was named is no place for tables: one line."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables shall be, as the flags say."""

    lake: str
    catalog: str = ""
    user: str = ""
    password: str = ""

    @property
    def kind(self) -> str:
        """The kind of sink."""
        if self.lake.startswith("jdbc:"):
            return "jdbc"
        return "sqlite" if self.lake.endswith((".db", ".sqlite", ".sqlite3")) else "iceberg"


def sink_lines(place: Place) -> Iterator[str]:
    """``[sink.lake]``. Raises NotASink."""
    yield "[sink.lake]                        # targets begin with the sink's name"
    yield f"kind = {quote(place.kind)}"
    if place.kind == "jdbc":
        yield f"url = {quote(place.lake)}"
        if place.user:
            yield f"user = {quote(place.user)}"
        if place.password:
            yield f"password = {quote(place.password)}"
    elif place.kind == "sqlite":
        yield f"path = {quote(place.lake)}"
    else:
        yield ""
        yield "[sink.lake.catalog]                # any property of Iceberg's catalog"
        yield from _catalog(place)


def _catalog(place: Place) -> Iterator[str]:
    scheme, separator, _ = place.lake.partition("://")
    if separator and scheme not in STORES:
        known = ", ".join(f"{name}://" for name in STORES)
        raise NotASink(f"{place.lake!r}: a folder, {known}, jdbc: or a file NAME.db is wanted")
    if place.catalog:
        if not place.catalog.startswith(("http://", "https://")):
            raise NotASink(f"--catalog {place.catalog!r}: the address of a REST catalog is wanted")
        yield 'type = "rest"'
        yield f"uri = {quote(place.catalog)}"
        if io := STORES.get(scheme):
            yield f"io-impl = {quote(io)}"
    elif separator:
        raise NotASink(f"{place.lake}: --catalog names the REST catalog of its tables")
    else:
        yield 'type = "jdbc"                      # a file on this machine: for one daemon alone'
        yield f"uri = {quote(f'jdbc:sqlite:{place.lake}/catalog.db')}"
        yield '"jdbc.schema-version" = "V1"'
    yield f"warehouse = {quote(place.lake)}"

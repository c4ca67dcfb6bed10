"""The Iceberg project's own REST catalog, with its tables' names in a file of SQLite.

Its own program listens on every interface, whatever its settings say. So a few lines of Java
(``LoopbackCatalog.java``) put its servlet on loopback; janino, which Spark ships, compiles them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.java import find_java
from demo.servers.jars import pyspark_jars, server_jars
from demo.servers.server import Server, ask, small_java

SOURCE = Path(__file__).with_name("LoopbackCatalog.java")


class RestCatalog(Server):
    """A REST catalog over one warehouse. ``properties`` are those of the catalog behind it."""

    name = "rest"

    def __init__(
        self, folder: Path, warehouse: str, properties: Mapping[str, str], port: int = 0
    ) -> None:
        super().__init__(folder, port)
        (self._jar,) = server_jars("rest")
        behind = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
            "jdbc.schema-version": "V1",
            # Two connections to one file of SQLite came to wait for each other for ever.
            "clients": "1",
            "warehouse": warehouse,
            **properties,
        }
        self.environment = map_names(behind)

    @property
    def uri(self) -> str:
        """What a client's ``uri`` is."""
        return f"http://{self.address}"

    def command(self) -> Sequence[str | Path]:
        compilers = sorted(pyspark_jars().glob("janino-*.jar"))
        compilers += sorted(pyspark_jars().glob("commons-compiler-*.jar"))
        return [
            *small_java(find_java().java, f"-Djava.io.tmpdir={self.folder}"),
            "-cp", os.pathsep.join(map(str, [self._jar, *compilers])),
            "org.codehaus.janino.SimpleCompiler", SOURCE, "demo.LoopbackCatalog", str(self.port),
        ]  # fmt: skip

    def answers(self) -> bool:
        return ask(f"{self.uri}/v1/config") is not None


def map_names(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as variables of the server's environment: ``_`` is a dot, ``__`` a hyphen."""
    return {
        "CATALOG_" + name.upper().replace("-", "__").replace(".", "_"): value
        for name, value in properties.items()
    }

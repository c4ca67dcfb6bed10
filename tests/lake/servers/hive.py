"""Hive's metastore of the version that pyspark ships, its names in a Derby of its own."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from actors.runtime.java import find_java
from actors.runtime.programs import HOST, ProgramError
from demo.servers.jars import pyspark_jars
from demo.servers.server import START_WITHIN_S, Server, small_java

_OPENED = ("lang", "net", "util", "nio", "util.concurrent")
_SETTINGS = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    # The pool that is among pyspark's jars.
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.metastore.event.db.notification.api.auth": "false",
    # A class that this logging needs is not among pyspark's jars.
    "hive.async.log.enabled": "false",
    # Without it no column can be dropped or moved but the last ones: Iceberg asks it of everybody.
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    # It chooses a free port for itself otherwise, on every interface.
    "hive.metastore.thrift.bind.host": HOST,
}


class Metastore(Server):
    """A metastore over one warehouse. ``hadoop`` are the settings of the warehouse's storage."""

    name = "metastore"

    def __init__(self, folder: Path, warehouse: str, hadoop: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._database = f"jdbc:derby:{folder / 'names'}"
        url = {"javax.jdo.option.ConnectionURL": f"{self._database};create=true"}
        settings = {**_SETTINGS, **url, "hive.metastore.warehouse.dir": warehouse, **hadoop}
        (folder / "hive-site.xml").write_text(_xml(settings))

    @property
    def uri(self) -> str:
        """What a client's ``uri`` is."""
        return f"thrift://{self.address}"

    def command(self) -> Sequence[str | Path]:
        opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
        path = os.pathsep.join((str(self.folder), f"{pyspark_jars()}/*"))
        return [
            *small_java(find_java().java, *opened, f"-Djava.io.tmpdir={self.folder}"),
            f"-Dderby.system.home={self.folder}", "-cp", path,
            "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port),
        ]  # fmt: skip

    def start(self) -> Metastore:
        if not (self.folder / "names").exists():
            self._make_locks()
        super().start()
        return self

    def _make_locks(self) -> None:
        told = subprocess.run(
            [
                *small_java(find_java().java, f"-Dij.database={self._database};create=true"),
                "-Dij.user=APP", "-Dij.password=mine", f"-Dderby.system.home={self.folder}",
                "-cp", f"{pyspark_jars()}/*", "org.apache.derby.tools.ij",
                str(Path(__file__).with_name("hive_locks.sql")),
            ],
            capture_output=True, text=True, check=False, timeout=START_WITHIN_S,
        )  # fmt: skip
        if told.returncode or "ERROR" in told.stdout:
            raise ProgramError(f"the metastore's locks can't be made: {told.stdout}{told.stderr}")

    def answers(self) -> bool:
        return b"default" in all_databases(self.port)


def all_databases(port: int) -> bytes:
    """Ask a metastore for its databases, in Thrift's binary protocol; empty for no answer."""
    name = b"get_all_databases"
    call = struct.pack(">II", 0x80010001, len(name)) + name + struct.pack(">I", 1) + b"\0"
    try:
        with socket.create_connection((HOST, port), timeout=30.0) as connection:
            connection.sendall(call)
            return connection.recv(4096)
    except OSError:
        return b""


def _xml(settings: Mapping[str, str]) -> str:
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"

"""Hadoop's file system in one process: a name node and a data node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.java import find_java
from actors.runtime.programs import HOST, free_port
from demo.servers.jars import pyspark_jars, server_jars
from demo.servers.server import Server, ask_json, small_java

SETTINGS: Mapping[str, str] = {"dfs.replication": "1"}
"""What clients need: there is one data node."""


class Hdfs(Server):
    """A file system. Killed, it forgets everything."""

    name = "hdfs"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._jars = server_jars("hdfs")
        self._http = free_port()

    @property
    def uri(self) -> str:
        """The root folder."""
        return f"hdfs://{self.address}"

    def command(self) -> Sequence[str | Path]:
        path = os.pathsep.join((*map(str, self._jars), f"{pyspark_jars()}/*"))
        return [
            *small_java(find_java().java, f"-Djava.io.tmpdir={self.folder}"),
            f"-Dtest.build.data={self.folder / 'data'}", "-cp", path,
            "org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format",
            "-nnport", str(self.port), "-httpport", str(self._http),
        ]  # fmt: skip

    def answers(self) -> bool:
        name = "Hadoop:service=NameNode,name=FSNamesystemState"
        beans = ask_json(f"http://{HOST}:{self._http}/jmx?qry={name}").get("beans") or [{}]
        state = beans[0]
        return state.get("NumLiveDataNodes") == 1 and state.get("FSState") == "Operational"

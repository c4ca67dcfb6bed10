"""What ``binlogd check-config`` finds unwise in Spark's settings: ports, and files on a disk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daemon.config.pipelines import Config
from sparkwriter.session.durable_files import CLASS
from sparkwriter.session.session import FILE_SYSTEM, is_local


def spark_warnings(config: Config) -> Iterator[str]:
    """One line each."""
    conf, local = config.spark.conf, is_local(config.spark.master)
    if conf.get("spark.scheduler.mode", "FAIR") != "FAIR":
        yield "spark.conf.spark.scheduler.mode: a long write holds up the short ones"
    if conf.get("spark.authenticate", str(local)).lower() != "true":
        yield _open_to(local)
    if local and conf.get(FILE_SYSTEM, CLASS) == CLASS:
        return
    why = "the files that a cluster writes" if not local else f"files of {conf[FILE_SYSTEM]}"
    for name, sink in config.sink.items():
        if _is_folder(sink.catalog.get("warehouse", "")):
            yield (
                f"sink.{name}.catalog.warehouse: is a folder, and {why} are not waited for: after a"
                " power cut a table may name some that are empty or not there"
            )


def _open_to(local: bool) -> str:
    if local:
        return "spark.conf.spark.authenticate: every user of this machine may reach Spark's ports"
    return (
        "spark.conf.spark.authenticate: whoever reaches the ports of driver and executors may read"
        ' and write; set it to "true", with spark.authenticate.secret on a standalone cluster, and'
        ' spark.network.crypto.enabled = "true"'
    )


def _is_folder(warehouse: str) -> bool:
    return bool(warehouse) and not re.match(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*:", warehouse)

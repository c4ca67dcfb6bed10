"""The jars of the broker and of the collector: where they are, and what brings them."""

from __future__ import annotations

import os
from pathlib import Path

from actors.runtime.jars import JarsError, extras_folder, own_jars
from actors.runtime.java import setup_command

EXTRA = "collector"
"""The extra jars: Kafka Connect and Debezium's connectors. The broker's are among the others."""


def broker_classpath() -> str:
    """Give the class path of a Kafka broker; raises JarsError."""
    return os.pathsep.join(map(str, own_jars("kafka")))


def worker_classpath() -> str:
    """Give the class path of a worker of Kafka Connect; raises JarsError."""
    return os.pathsep.join(map(str, sorted(collector_folder("worker").glob("*.jar"))))


def collector_folder(part: str) -> Path:
    """Give a folder of the collector's jars: ``worker``, or the plugin of ``mariadb``, ``mysql`` or
    ``postgres``. Raises JarsError where they were not brought."""
    folder = extras_folder() / EXTRA / part
    if not any(folder.glob("*.jar")):
        raise JarsError(f"needs the jars of {EXTRA}: run `{setup_command(EXTRA)}`")
    return folder

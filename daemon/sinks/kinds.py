"""The kinds of sink that a configuration may name. Imported only where sinks are looked at."""

from __future__ import annotations

from daemon.config.config import Config
from daemon.sinks.iceberg import IcebergSink
from daemon.sinks.jdbc import JdbcSink
from daemon.sinks.port import Sink
from daemon.sinks.python import PythonSink
from daemon.sinks.sections import AnySink, IcebergSection, JdbcSection, PythonSection, SqliteSection
from daemon.sinks.sqlite import SqliteSink


def sinks_of(config: Config) -> dict[str, Sink]:
    """Each ``[sink.NAME]`` by its name."""
    return {name: _sink(name, section, config) for name, section in config.sink.items()}


def _sink(name: str, section: AnySink, config: Config) -> Sink:
    match section:
        case IcebergSection():
            return IcebergSink(name, section, config)
        case PythonSection():
            return PythonSink(name, section)
        case SqliteSection():
            return SqliteSink(name, section)
        case JdbcSection():
            return JdbcSink(name, section, config)

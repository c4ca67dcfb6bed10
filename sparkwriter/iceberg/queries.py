"""Answers queries over a lake of this machine, by DuckDB.

DuckDB reads what binlogd writes: deletion vectors and deletes by equality, both (decision 80).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from changes.model.model import TargetName
from changes.model.printable import reason_of
from changes.sql.quoted import quoted
from offsets.position import TopicPartition
from sparkwriter.iceberg.local_tables import State, metadata_of, since_when, snapshot_of
from sparkwriter.kit.queries import At, NoAnswer, QueryRows, Since

_WHAT = "queries of a lake need DuckDB, 120 MB: "
_HOW = (
    "pip install 'binlogd[query]', or in a checkout "
    "pip install --require-hashes -r requirements-query.txt"
)
_PACKAGED = Path("/usr/lib/binlogd")
"""The environment of the Debian package; dpkg's alone."""
_HOW_PACKAGED = "apt install ./binlogd-query_*.deb, which `make deb` puts beside binlogd's package"

EXTENSIONS = ("avro", "iceberg")
"""Of DuckDB, in the order in which they need each other; packages bring them, so nothing is
fetched."""

_AT_ONCE = 1000
"""Rows that become Python's values together."""


class LakeQueries:
    """See ``Queries``. Each target is a view in a database in memory: DuckDB opens the lake's files
    for reading alone, and nothing but a SELECT is run."""

    backslashes = False

    def __init__(self, name: str, catalog: Mapping[str, str]) -> None:
        self._name, self._catalog = name, catalog

    def spell(self, target: TargetName) -> str:
        """See ``Queries``."""
        return f"{_name(target.namespace)}.{_name(target.table)}"

    def since(self, target: TargetName, source: TopicPartition, offset: int) -> Since | None:
        """See ``Queries``."""
        return since_when(metadata_of(self._catalog, target), target, source, offset)

    @contextmanager
    def answer(self, sql: str, targets: Sequence[TargetName], at: At) -> Iterator[QueryRows]:
        """See ``Queries``."""
        # A lake that can't be read here says so before anybody installs what would not help.
        there = [(target, metadata_of(self._catalog, target)) for target in targets]
        duckdb = _duckdb()
        connection = duckdb.connect()
        try:
            load_extensions(duckdb, connection)
            for target, path in there:
                own = at[target] if isinstance(at, Mapping) else at
                self._show(connection, target, path, own)
            connection.execute("SET lock_configuration = true")
            statements = connection.extract_statements(sql)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                raise NoAnswer("one SELECT is required: a query changes nothing")
            reader = connection.execute(statements[0]).to_arrow_reader(_AT_ONCE)
            yield QueryRows(reader.schema.names, _rows(reader))
        except duckdb.Error as error:
            raise NoAnswer(reason_of(error)) from error
        finally:
            connection.close()

    def _show(self, connection: Any, target: TargetName, path: Path, at: State) -> None:
        """Make a target a view of the table with this metadata."""
        snapshot = snapshot_of(path, target, at)
        place = quoted(str(path))
        state = "" if snapshot is None else f", snapshot_from_id = {snapshot}"
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_name(target.namespace)}")
        scan = f"SELECT * FROM iceberg_scan({place}{state})"
        connection.execute(f"CREATE VIEW {self.spell(target)} AS {scan}")


def _name(text: str) -> str:
    return quoted(text, '"')


def _how() -> str:
    """The way to DuckDB in this installation."""
    return _WHAT + (_HOW_PACKAGED if Path(sys.prefix) == _PACKAGED else _HOW)


def _duckdb() -> Any:
    """The module. Raises NoAnswer where it is not installed."""
    try:
        return import_module("duckdb")
    except ImportError as error:
        raise NoAnswer(_how()) from error


def load_extensions(duckdb: Any, connection: Any) -> None:
    """Load the extensions from their packages. Raises NoAnswer."""
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET TimeZone = 'UTC'")
    for name in EXTENSIONS:
        package = find_spec(f"duckdb_extension_{name}")
        if package is None or not package.submodule_search_locations:
            raise NoAnswer(_how())
        folder = Path(package.submodule_search_locations[0]) / "extensions"
        file = folder / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        if not file.exists():
            raise NoAnswer(f"DuckDB is {duckdb.__version__}, its extension {name} is not: {_how()}")
        connection.execute(f"LOAD {quoted(str(file))}")


def _rows(reader: Any) -> Iterator[Sequence[Any]]:
    for batch in reader:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)

"""The demo of ``binlogd replicate``: its databases, its comparison; all of it in the long tier."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.programs import ProgramError
from demo.paced import AT_ONCE
from demo.replicate.__main__ import run
from demo.replicate.changes import Changes
from demo.replicate.compare import _compared
from demo.replicate.source import DATABASE, KEYS, SOURCES, Source, columns_of, sizes
from tests.needs import collector_jars, missing, needed

pytestmark = pytest.mark.integration


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that PostgreSQL, which runs as another user than root, may enter."""
    with tempfile.TemporaryDirectory(prefix="binlogd-replicate-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def source_of(kind: str, folder: Path) -> Source:
    try:
        with needed():
            return Source(kind, folder)
    except ProgramError as error:
        missing(kind, str(error))


@pytest.mark.parametrize("kind", SOURCES)
def test_changes_survive_a_kill_of_their_server(kind: str, folder: Path) -> None:
    """Rows are there in their types; a difference of one value is found."""
    source = source_of(kind, folder)
    source.start()
    changes = Changes(source, 2000, 400.0, 1)
    try:
        source.create(2000)
        counted = sizes(2000)
        before = {table: source.read(table) for table in KEYS}
        assert {table: found.num_rows for table, found in before.items()} == counted
        assert before["codes"].column_names == list(columns_of("codes"))
        changes.start()
        _await(changes, AT_ONCE * 5)
        source.kill()
        source.start()
        _await(changes, changes.done + AT_ONCE * 5)
        assert changes.stop() % AT_ONCE == 0
        events = source.read("events")
        assert list(_compared("events", events, events)) == []
        assert list(_compared("events", events, before["events"]))
        source.run([f"UPDATE {DATABASE}.events SET qty = -7 WHERE id = {events['id'][0]}"])
        (line,) = _compared("events", source.read("events"), events)
        assert "'qty': -7" in line
    finally:
        source.kill()


def _await(changes: Changes, done: int) -> None:
    while changes.done < done:
        assert changes.failure is None
        changes.join(0.05)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", SOURCES)
def test_from_a_database_to_equal_tables(kind: str, folder: Path) -> None:
    """One command, each part killed; both sides are read by the demo itself."""
    source_of(kind, folder / "tried")
    collector_jars()
    told = run(kind, folder / "demo", rows=60_000, per_s=200.0, seed=7)
    assert told.startswith("OK, 60000 rows loaded, ")
    assert f"{len(KEYS)} tables equal, first table after " in told

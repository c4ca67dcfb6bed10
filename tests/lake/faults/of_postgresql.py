"""A catalog in PostgreSQL whose connection breaks amid a commit, on the lake ``postgresql-s3``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from py4j.protocol import Py4JJavaError

from changes.model.errors import SinkUnavailable
from tests.lake.faults.of_writes import STEPS, check, write_until_there
from tests.lake.faults.wire import Wire
from tests.lake.faults.world import World, world

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

COMMIT, CREATE = b"UPDATE iceberg_tables", b"INSERT INTO iceberg_tables"

END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@pytest.fixture(scope="module")
def wire(lake) -> Iterator[Wire]:
    """What stands before the catalog."""
    if lake.name != "postgresql-s3":
        pytest.skip(f"{lake.name} has no catalog in PostgreSQL")
    with Wire(lake.servers["catalog"].server.port) as made:
        yield made


@pytest.fixture(scope="module")
def there(spark, lake, wire: Wire, tmp_path_factory) -> Iterator[World]:
    """The lake behind it."""
    uri = f"jdbc:postgresql://127.0.0.1:{wire.port}/postgres"
    with world(spark, lake, tmp_path_factory.mktemp("faults"), {"uri": uri}) as made:
        yield made


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("then", ["tried again by the pool", "away"])
def test_a_commit_is_done_and_its_connection_breaks(
    there: World, wire: Wire, step: str, then: str
) -> None:
    """The driver's pool asks again, and finds the pointer moved: by its own commit. Or it finds
    nobody, so that nobody can look."""
    way, make = STEPS[step]
    table = there.table(way)
    there.writer.write(table.insert())
    batch, cuts = make(table), wire.cuts
    wire.cut_after = COMMIT
    if then == "away":
        wire.refuse = True
        with pytest.raises(SinkUnavailable):
            there.writer.write(batch)
        wire.refuse = False
    write_until_there(there.writer, batch)
    assert wire.cuts == cuts + 1
    check(table, may_leave=then == "away")


def test_a_table_is_made_and_its_connection_breaks(there: World, wire: Wire) -> None:
    """It is there, with the files of its first snapshot."""
    table = there.table()
    batch, cuts = table.insert(), wire.cuts
    wire.cut_after = CREATE
    write_until_there(there.writer, batch)
    assert wire.cuts == cuts + 1
    check(table, may_leave=False)


def test_the_server_ends_all_connections(there: World, wire: Wire, lake) -> None:
    """As by pg_terminate_backend, between two writes."""
    table = there.table()
    for _ in range(3):
        lake.servers["catalog"].server.run("postgres", [END_ALL])
        write_until_there(there.writer, table.insert())
    with suppress(Py4JJavaError):  # the readers' connections have ended, too
        there.load(table.target)
    check(table, may_leave=False)

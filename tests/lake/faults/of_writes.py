"""Each request of a write meets each fault: the write lands once or raises one of the port's
errors, and the same batch, written again, ends with the rows and marks as they must be.

For ``make test-lake`` and ``test_faults.py``, on the lake that TEST_LAKE names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product

import pyarrow as pa
import pytest

from actors.contract.writes import StagedBatch
from changes.model.errors import LostRace, SinkUnavailable, TargetRefused
from changes.model.model import AddColumn, Column, TruncateTable
from offsets.fence import Fenced
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.lake.faults.catalogue import (
    FAULTS,
    OF_CATALOGS_ALONE,
    OF_STORES_ALONE,
    Late,
    after_a,
    breaking,
    in_turn,
    kind_of,
    of_catalog,
)
from tests.lake.faults.world import Table, World, world
from tests.lake.proxy import Asked, Fault, Status
from tests.sparkwriter.conftest import LANE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

FOREVER = 10_000
ATTEMPTS = 4
"""Writes of one batch, as the processor's, until it is there: the first is the one that breaks."""

PORTS_OWN = (SinkUnavailable, LostRace, TargetRefused, Fenced)


@pytest.fixture(scope="module")
def there(spark, lake, tmp_path_factory) -> Iterator[World]:
    """The lake behind proxies."""
    if lake.name not in ("rest-folder", "rest-s3", "postgresql-s3"):
        pytest.skip(f"nothing of {lake.name} is spoken to by HTTP")
    with world(spark, lake, tmp_path_factory.mktemp("faults")) as made:
        yield made


needs_catalog = pytest.mark.skipif(
    not os.environ.get("TEST_LAKE", "").startswith("rest"), reason="breaks a catalog over HTTP"
)

Step = tuple[Write, Callable[[Table], StagedBatch]]

STEPS: dict[str, Step] = {
    "rows": (Write.MERGE, Table.insert),
    "vectors": (Write.MERGE, Table.change),
    "equality": (Write.EQUALITY, Table.change),
}


def _added(table: Table) -> Iterator[StagedBatch]:
    yield table.statement(AddColumn(Column("m", pa.int32()), 7))


def _emptied(table: Table) -> Iterator[StagedBatch]:
    table.rows.clear()
    yield table.statement(TruncateTable())


def _wider(table: Table) -> Iterator[StagedBatch]:
    yield table.insert(more=[Column("extra", pa.string())])


STATEMENTS: dict[str, Callable[[Table], Iterator[StagedBatch]]] = {
    "a column is added": _added,
    "a column comes": _wider,
    "emptied": _emptied,
    "renamed": Table.renaming,
}


def kinds_of(there: World, act: Callable[[], object]) -> list[str]:
    """The kinds of requests that something makes, in the order of their first."""
    for proxy in there.proxies.values():
        proxy.asked.clear()
    act()
    asked = [asked for proxy in there.proxies.values() for asked in proxy.asked]
    return list(dict.fromkeys(map(kind_of, asked)))


def fits(kind: str, name: str) -> bool:
    """Whether a fault is one of those that answer to such a request."""
    return name not in (OF_STORES_ALONE if of_catalog(kind) else OF_CATALOGS_ALONE)


def write_until_there(writer: IcebergWriter, batch: StagedBatch) -> None:
    """As the processor: the same batch again, until it is there."""
    for attempt in range(ATTEMPTS):
        try:
            state = writer.write(batch)
        except SinkUnavailable:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            assert batch.is_barrier or state.hwms[LANE] == batch.lanes[LANE].through
            return


def broken_write(there: World, batch: StagedBatch, kind: str, fault: Fault, times: int) -> str:
    """Write it while requests of a kind break; what the port said, empty where it went well."""
    with there.breaking(breaking(kind, fault, times)):
        try:
            there.writer.write(batch)
        except PORTS_OWN as error:
            return f"{type(error).__name__}: {error}"
    return ""


def check(table: Table, may_leave: bool) -> None:
    """No file that is named is missing, the rows are the oracle's, no other file was left."""
    named, files = table.named(), table.files()
    assert named <= files, f"missing: {named - files}"
    assert table.stored() == table.rows
    before, table.left = table.left, files - named
    assert may_leave or table.left <= before, f"left behind: {table.left - before}"


DONE = frozenset({"answer lost", "answer cut", "500 after", "503 after", "504 after"})
"""Faults after which nobody knows that the server has done it."""


def may_leave(kind: str, name: str) -> bool:
    """Whether a file may stay: of a commit whose outcome is unknown, one that Iceberg put without
    hearing so, or one whose removal failed."""
    if kind == "table: commit":
        return name not in ("409", "429 after")
    # What to remove is read there; and a database's commit begins with its metadata file.
    if kind in ("GET: snap-", "HEAD: snap-") or kind.endswith("metadata.json"):
        return True
    by_iceberg = kind in ("PUT: manifest", "PUT: snap-")
    return (by_iceberg and name in DONE) or kind.startswith(("DELETE", "POST"))


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("step", STEPS)
def test_each_request_of_a_write_breaks(there: World, step: str, name: str) -> None:
    """Once, and for as long as the write lasts."""
    way, make = STEPS[step]
    table = there.table(way)
    for _ in range(3):
        there.writer.write(table.insert())
    kinds = kinds_of(there, lambda: there.writer.write(make(table)))
    assert kinds, "no request passes a proxy"
    wrong = list[str]()
    check(table, may_leave=False)
    for kind, times in product(kinds, (1, FOREVER)):
        if not fits(kind, name):
            continue
        batch, begun = make(table), time.monotonic()
        said = broken_write(there, batch, kind, FAULTS[name], times)
        took = time.monotonic() - begun
        case = f"{step}, {kind}, {name} x {times}: {said or 'applied'}"
        print(f"{took:5.1f} s  {case}", flush=True)
        try:
            write_until_there(there.writer, batch)
            check(table, may_leave(kind, name))
        except Exception as error:
            wrong.append(f"{case}, and then: {error}")
    assert not wrong, "\n".join(wrong)


@needs_catalog
def test_a_landed_commit_that_hears_a_conflict_while_no_look_is_answered(there: World) -> None:
    """A gateway tried a commit again by itself, so the client hears a conflict with its own; and
    then the catalog is away. Its files are the table's."""
    load_fails = after_a("table: commit", lambda a: _load(a, Status(500)))
    for way, make in STEPS.values():
        table = there.table(way)
        there.writer.write(table.insert())
        batch = make(table)
        own_conflict = breaking("table: commit", FAULTS["409 after"], 1)
        with there.breaking(in_turn(load_fails, own_conflict)), pytest.raises(SinkUnavailable):
            there.writer.write(batch)
        write_until_there(there.writer, batch)
        check(table, may_leave=False)


def _load(asked: Asked, fault: Fault) -> Fault | None:
    return fault if kind_of(asked) == "table: load" else None


@pytest.mark.parametrize("name", FAULTS)
def test_each_request_of_a_new_table_breaks(there: World, name: str) -> None:
    """The table is made once, with the rows; its first snapshot's files are never missing."""
    calm = there.table()
    wrong = list[str]()
    for kind in kinds_of(there, lambda: there.writer.write(calm.insert())):
        if fits(kind, name):
            table = there.table()
            batch = table.insert()
            said = broken_write(there, batch, kind, FAULTS[name], 1)
            print(f"new, {kind}, {name}: {said or 'applied'}", flush=True)
            try:
                write_until_there(there.writer, batch)
                check(table, may_leave=True)
            except Exception as error:
                wrong.append(f"{kind}, said {said!r}, and then: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name", ["answer lost", "500 after", "503 after", "409 after", "cut before"]
)
def test_each_request_of_statements_breaks(there: World, name: str) -> None:
    """A column that comes, one that a statement adds, a table that is emptied, one that is renamed:
    each lands once, and a fault that passes never has the target refused."""
    wrong = list[str]()
    for what, make in STATEMENTS.items():
        calm = there.table()
        there.writer.write(calm.insert())
        for kind in kinds_of(there, partial(write_together, there, make(calm))):
            if not fits(kind, name):
                continue
            table = there.table()
            there.writer.write(table.insert())
            try:
                with there.breaking(breaking(kind, FAULTS[name], 1)):
                    said = write_together(there, make(table))
                print(f"{what}, {kind}, {name}: {said}", flush=True)
                check(table, may_leave=True)
            except Exception as error:
                wrong.append(f"{what}, {kind}: {error}")
    assert not wrong, "\n".join(wrong)


def write_together(there: World, batches: Iterator[StagedBatch]) -> list[str]:
    """Write batches of which one may wait for another, as their processors do: each until it is
    there. Gives what was said on the way; raises what no retry mends."""
    left, said = list(batches), list[str]()
    for _ in range(ATTEMPTS):
        pending, left = left, []
        for batch in pending:
            try:
                there.writer.write(batch)
            except SinkUnavailable as error:
                said.append(f"{type(error).__name__}: {error}")
                left.append(batch)
    assert not left, said
    return said


@needs_catalog
def test_a_commit_that_arrives_late(there: World) -> None:
    """It reaches the catalog when its client has given it up, and when another write has landed."""
    for way, make in STEPS.values():
        table = there.table(way)
        there.writer.write(table.insert())
        late, batch = Late("table: commit"), make(table)
        proxy = there.proxy_of(late.kind)
        assert proxy is not None
        with proxy.breaking(late.rule):
            write_until_there(there.writer, batch)
            there.writer.write(table.insert())
            late.let_go()
        there.settle()
        check(table, may_leave=True)


@needs_catalog
def test_two_writers_whose_commits_break(there: World) -> None:
    """One after the other has the lane; the commits of both are done and lost, or refused. What the
    one has written the other is fenced off from."""
    table = there.table()
    there.writer.write(table.insert())
    other = there.new_writer()
    names = ("answer lost", "409 after", "500 after", "cut before")
    for number, name in enumerate(names * 2):
        mine, theirs = table.insert(), None
        fault = breaking("table: commit", FAULTS[name], 1)
        with there.breaking(fault), suppress(*PORTS_OWN):
            there.writer.write(mine)
        # The other member has the lane now: the same batch is read and written again by it.
        write_until_there(other if number % 2 else there.writer, mine)
        theirs = table.change()
        with there.breaking(breaking("table: commit", FAULTS[name], 1)), suppress(*PORTS_OWN):
            other.write(theirs)
        write_until_there(there.writer, theirs)
        with pytest.raises(Fenced):
            other.write(mine)
    check(table, may_leave=True)

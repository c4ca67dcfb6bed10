"""Each request of a write meets each fault: the write lands once or raises one of the port's
errors, and the same batch, written again, ends with the rows and marks as they must be.

For ``make test-lake`` and ``test_faults.py``, on the lake that TEST_LAKE names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from actors.contract.ports import LostRace, SinkUnavailable, TargetRefused
from actors.contract.writes import StagedBatch
from offsets.fence import Fenced
from sparkwriter.iceberg.options import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.lake.faults.catalogue import (
    FAULTS,
    OF_CATALOGS_ALONE,
    OF_STORES_ALONE,
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


Step = tuple[Write, Callable[[Table], StagedBatch]]

STEPS: dict[str, Step] = {
    "rows": (Write.MERGE, Table.insert),
    "vectors": (Write.MERGE, Table.change),
    "equality": (Write.EQUALITY, Table.change),
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
            assert state.hwms[LANE] == batch.lanes[LANE].through
            return


def broken_write(there: World, batch: StagedBatch, kind: str, fault: Fault, times: int) -> str:
    """Write it while requests of a kind break; what the port said, empty where it went well."""
    with there.breaking(breaking(kind, fault, times)):
        try:
            there.writer.write(batch)
        except PORTS_OWN as error:
            return f"{type(error).__name__}: {error}"
    return ""


def check(table: Table, orphans_before: set[str], may_leave: bool) -> set[str]:
    """Rows, files named and files left; gives those that are left."""
    named, files = table.named(), table.files()
    assert named <= files, f"missing: {named - files}"
    assert table.stored() == table.rows
    left = files - named
    assert may_leave or left <= orphans_before, f"left behind: {left - orphans_before}"
    return left


DONE = frozenset({"answer lost", "answer cut", "500 after", "503 after", "504 after"})
"""Faults after which nobody knows that the server has done it."""


def may_leave(kind: str, name: str) -> bool:
    """Whether a file may stay: of a commit whose outcome is unknown, one that Iceberg put without
    hearing so, or one whose removal failed."""
    if kind == "table: commit":
        return name not in ("409", "429 after")
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
    wrong, orphans = list[str](), check(table, set(), may_leave=False)
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
            orphans = check(table, orphans, may_leave(kind, name))
        except Exception as error:
            wrong.append(f"{case}, and then: {error}")
    assert not wrong, "\n".join(wrong)


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
        check(table, set(), may_leave=False)


def _load(asked: Asked, fault: Fault) -> Fault | None:
    return fault if kind_of(asked) == "table: load" else None

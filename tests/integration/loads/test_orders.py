"""Each order of a change and the range of rows that has its key: a real MariaDB, a real stream.

*Before*: the change is made before the range is read; *in*: between its read and its write;
*after*: behind its write. The message of the change has arrived before the load goes on. What the
reads saw is compared as well, so no order passes without having taken place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum, auto
from typing import Literal, NamedTuple

import pytest

from demo.broker import DevBroker
from tests.databases.base.conftest import folder
from tests.databases.base.servers import Server, mariadb, within
from tests.integration.loads.copies import write_config
from tests.integration.loads.orders import KEYS, RANGE_ROWS, HeldLoad, Rows, Table, beat, read
from tests.integration.rig import Rig
from tests.integration.test_load import Life
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

FIRST, SECOND = KEYS[100], KEYS[-100]
"""A key of each range. The next odd one is free."""


class When(Enum):
    """How far the first range is. The second one is not read then."""

    READ = auto()
    WRITTEN = auto()


READ, WRITTEN = When.READ, When.WRITTEN


class Order(NamedTuple):
    """What is done, when, to the row of which key. ``to``: the key that it gets."""

    name: str
    act: Literal["insert", "update", "delete", "move"]
    when: When
    key: int
    to: int = 0


ORDERS = [
    Order("insert before", "insert", READ, SECOND + 1),
    Order("insert in", "insert", READ, FIRST + 1),
    Order("insert after", "insert", WRITTEN, FIRST + 1),
    Order("update before", "update", READ, SECOND),
    Order("update in", "update", READ, FIRST),
    Order("update after", "update", WRITTEN, FIRST),
    Order("delete before", "delete", READ, SECOND),
    Order("delete in", "delete", READ, FIRST),
    Order("delete after", "delete", WRITTEN, FIRST),
    Order("key changed before", "move", READ, SECOND, SECOND + 1),
    Order("key changed in", "move", READ, FIRST, FIRST + 1),
    Order("key changed after", "move", WRITTEN, FIRST, FIRST + 1),
    Order("key of a range that is read into one that is not", "move", READ, FIRST, SECOND + 1),
    Order("key of a range that is written into one that is not read", "move", WRITTEN, FIRST,
          SECOND + 1),
    Order("key of a range that is not read into one that is", "move", READ, SECOND, FIRST + 1),
    Order("key of a range that is not read into one that is written", "move", WRITTEN, SECOND,
          FIRST + 1),
]  # fmt: skip


class World(NamedTuple):
    """A daemon without Spark that all orders share. Each has a table of its own."""

    rig: Rig
    server: Server
    life: Life
    config: str


@pytest.fixture(scope="module")
def world(broker: DevBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with folder() as where, needed(), mariadb(where / "mariadb") as server:

        def no_spark() -> None:
            raise AssertionError("nothing here needs Spark")

        rig = Rig(broker, no_spark, {}, tmp_path_factory.mktemp("orders"))  # type: ignore[arg-type]
        server.run([f"CREATE DATABASE {rig.db}"])
        config = write_config(rig, server, connections=1, margin_s=1.0, chunk_rows=RANGE_ROWS)
        life = Life(rig, config)
        beat(rig)
        within(60, lambda: (rig.folder / "state" / "p.offsets.json").exists())
        read(rig)
        yield World(rig, server, life, str(config))
        life.stop()


def done(order: Order, table: Table) -> None:
    """Make the change, and have it arrive."""
    if order.act == "move":
        table.move(order.key, order.to)
    else:
        getattr(table, order.act)(order.key)


def seen(before: Rows, after: Rows, bound: int) -> Rows:
    """What reads of the first range see before the change, and of the second one after it."""
    first = {key: row for key, row in before.items() if key <= bound}
    return first | {key: row for key, row in after.items() if key > bound}


@pytest.mark.parametrize("order", ORDERS, ids=[order.name for order in ORDERS])
def test_each_order_ends_equal(order: Order, world: World) -> None:
    """The new table has what the reads saw, and in the end what the source has."""
    table = Table(world.rig, world.server, f"t{ORDERS.index(order)}")
    load = HeldLoad(*world, table)
    before = table.rows()
    with ExitStack() as locks:
        with load.first_range_is_read():
            if order.when == READ:
                done(order, table)
            locks.enter_context(table.locked())
        load.await_first_write()
        if order.when == WRITTEN:
            done(order, table)
    loaded, bound = load.await_rows()
    after = table.rows()
    assert after != before
    assert FIRST + 1 <= bound < SECOND
    assert loaded == seen(before, after, bound)
    # A change of the second range alone was read: the stream brings it once more. All others are
    # in no row that was read, or in one too many.
    assert (loaded == after) is (order.name.endswith(" before"))
    assert load.await_end() == after == table.rows()
    table.close()

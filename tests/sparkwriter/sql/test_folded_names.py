"""Two targets never share a table, whatever a server makes of the case of names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actors.contract.writes import Swap
from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.try_out import try_out
from tests.live.mariadb import MariaDb
from tests.sparkwriter.conftest import LANE
from tests.sparkwriter.databases import JdbcTables, Server
from tests.sparkwriter.sql.conftest import Staging

FIRST, SECOND = TargetName("db", "shop", "Orders"), TargetName("db", "Shop", "orders")


@pytest.fixture
def folding(tmp_path_factory) -> Iterator[JdbcTables]:
    """A server that keeps names in small letters."""
    folder = tmp_path_factory.mktemp("folding")
    folder.chmod(0o755)
    made = MariaDb(folder / "server", options=["--lower-case-table-names=1"])
    made.start()
    tables = JdbcTables(Server(f"jdbc:mariadb://127.0.0.1:{made.port}/", "root", made))
    yield tables
    tables.close()
    made.program.kill()


def test_the_second_of_two_names_is_refused(folding, staging, orders, tmp_path) -> None:
    """By both, whether it is its first batch or the ledger knows it; the first one goes on, by
    another member, too."""
    writer = LedgeredWriter(folding.store())
    first, second = (Staging(tmp_path, one, staging.schema) for one in (FIRST, SECOND))
    writer.write(first.batch(orders(("U", 1, "a", 1)), 1))
    late = second.batch(orders(("U", 1, "b", 2)), 1)
    for _ in range(2):
        with pytest.raises(TargetRefused, match=r"db\.Shop\.orders: .*the target db\.shop\.Orders"):
            LedgeredWriter(folding.store()).write(late)
    LedgeredWriter(folding.store()).write(first.batch(orders(("U", 2, "a", 1)), 2))
    assert folding.read(FIRST).sort_by("id")["note"].to_pylist() == ["a", "a"]
    session = folding.server.connect()
    # Both were made at once, before either could see the other.
    columns = "namespace, name, version, marks, freed, made, step, checksum"
    session.run(
        f"INSERT INTO binlogd.__binlogd_targets ({columns}) SELECT 'Shop', 'orders', version + 5,"
        " marks, freed, made, step, NULL FROM binlogd.__binlogd_targets"
    )
    session.close()
    with pytest.raises(TargetRefused, match="its table is that of the target"):
        LedgeredWriter(folding.store()).write(late)
    LedgeredWriter(folding.store()).write(first.batch(orders(("U", 3, "a", 1)), 3))
    lines = list(try_out(folding.server.connect, "binlogd", [FIRST, SECOND]))
    assert any("its table is that of db.shop.Orders" in line for line in lines)
    new, aside = (SECOND._replace(table=f"orders__{end}") for end in ("new", "aside"))
    assert "the target db.shop.Orders" in " ".join(folding.store().in_the_way(SECOND, new, aside))
    LedgeredWriter(folding.store()).write(
        Staging(tmp_path, new, staging.schema).batch(orders(("U", 9, "b", 1)), 9)
    )
    with pytest.raises(TargetRefused, match=r"db\.Shop\.orders: its table is that of the target"):
        LedgeredWriter(folding.store()).swap(Swap(SECOND, new, aside, {LANE: 10}))
    assert folding.read(FIRST).num_rows == 3


def test_names_that_differ_in_case_are_two_tables_elsewhere(
    server, writer, staging, orders, tables, tmp_path
) -> None:
    """PostgreSQL's are quoted; MySQL's files have the case that was written."""
    first = Staging(tmp_path, staging.target, staging.schema)
    other = staging.target._replace(table=staging.target.table.upper())
    second = Staging(tmp_path, other, staging.schema)
    writer.write(first.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(second.batch(orders(("U", 1, "b", 1)), 1))
    assert tables.read(first.target)["note"].to_pylist() == ["a"]
    assert tables.read(other)["note"].to_pylist() == ["b"]

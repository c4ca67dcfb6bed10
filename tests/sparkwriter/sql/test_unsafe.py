"""Tables of PostgreSQL that lose, hide or exchange rows without a word are refused."""

from __future__ import annotations

import pytest

from changes.model.errors import TargetRefused
from tests.sparkwriter.conftest import LANE

UNSAFE = {
    "SET UNLOGGED": ("SET LOGGED", "it is UNLOGGED, and a crash of the server empties it"),
    "ENABLE ROW LEVEL SECURITY": ("DISABLE ROW LEVEL SECURITY", "row security hides rows"),
}


@pytest.mark.parametrize("change", UNSAFE)
def test_a_table_that_may_lose_or_hide_rows(
    change, server, writer, table, sql, orders, target
) -> None:
    """PostgreSQL would say nothing of it."""
    if not server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql(f"ALTER TABLE {name} {change}")
    sql("DROP ROLE IF EXISTS plain", "CREATE ROLE plain", f"GRANT ALL ON {name} TO plain")
    sql("GRANT ALL ON SCHEMA shop, binlogd TO plain")
    sql("GRANT ALL ON ALL TABLES IN SCHEMA binlogd TO plain")
    back, said = UNSAFE[change]
    session = writer.tables.session
    session.run("SET ROLE plain")
    batch = table.batch(orders(("U", 1, "b", 1)), 2)
    with pytest.raises(TargetRefused, match=said):
        writer.write(batch)
    session.run("RESET ROLE")
    sql(f"ALTER TABLE {name} {back}")
    assert writer.write(batch).hwms == {LANE: 2}
    sql("DROP OWNED BY plain", "DROP ROLE plain")


def test_a_rule_that_writes_something_else(server, writer, table, sql, orders, target) -> None:
    """PostgreSQL's: DO INSTEAD NOTHING."""
    if not server.is_postgres:
        return
    sql(f"CREATE RULE r AS ON INSERT TO shop.{target.table} DO INSTEAD NOTHING")
    with pytest.raises(TargetRefused, match="it has rules, which may write something else"):
        writer.write(table.batch(orders(("U", 3, "b", 1)), 2))

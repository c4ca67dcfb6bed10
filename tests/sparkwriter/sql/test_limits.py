"""What a server does not take is refused by name, and not cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from databases.base.url import parse_url
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore


def test_statements_are_as_large_as_the_server_takes(
    server, writer, typed, sql, tables, target
) -> None:
    """A row that is larger is refused by name; many that are smaller are several statements."""
    if server.is_postgres:
        return
    ((before,),) = sql("SELECT @@global.max_allowed_packet")
    sql("SET GLOBAL max_allowed_packet = 65536")
    try:
        ids = pa.array(range(300), pa.int64())
        writer.write(typed(1, id=ids, v=pa.array(["x" * 1000] * 300)))
        large = typed(2, 1, id=ids.slice(0, 1), v=pa.array(["x" * 70_000]))
        with pytest.raises(TargetRefused, match=r"a row of 70.* bytes, and max_allowed_packet"):
            writer.write(large)
    finally:
        sql(f"SET GLOBAL max_allowed_packet = {before}")
    assert tables.read(target).num_rows == 300


def test_a_character_set_that_lacks_the_text(server, writer, typed, sql, target) -> None:
    """No question mark is stored for it."""
    if server.is_postgres:
        sql("DROP DATABASE IF EXISTS latin")
        sql("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'")
        url = parse_url(server.url.replace("/postgres", "/latin"))
        store = JdbcStore(lambda: connect(url, server.user, None), "binlogd")
        writer = LedgeredWriter(store)
    else:
        sql(
            f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, v varchar(9) CHARSET latin1)"
        )
        store = writer.tables
    with pytest.raises(TargetRefused, match=r"(?i)(no equivalent|incorrect string value)"):
        writer.write(typed(1, id=pa.array([1], pa.int64()), v=pa.array(["漢"])))
    writer.write(typed(1, id=pa.array([1], pa.int64()), v=pa.array(["ß"])))
    store.close()

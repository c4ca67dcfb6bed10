"""Values of many megabytes: read whole, compared by a digest, in bounded memory."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.model.model import TableName
from changes.sql.forms import Form
from changes.sql.spark.canonical import printed
from databases.base.errors import DatabaseRefused
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery
from tests.databases.base.servers import Server

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("drivers")]
KINDS = ["mariadb", "mysql", "postgresql"]
LONG = TableName("long", "t")
BYTES = 12_000_000
"""More than half of MariaDB's ``max_allowed_packet``, beyond which a text in hex is null there."""


def filled(server: Server, rows: int) -> None:
    blob, text = "LONGBLOB", "LONGTEXT"
    cascade = made = ""
    if server.kind == "postgresql":
        blob, text, cascade = "bytea", "text", " CASCADE"
        made = f"INSERT INTO long.t SELECT n, decode(repeat('00ff', {BYTES // 2}), 'hex'), "
        made += f"repeat('ü', {BYTES // 2}) FROM generate_series(1, {rows}) n"
    else:
        values = f"REPEAT(X'00ff', {BYTES // 2}), REPEAT(_utf8mb4 X'C3BC', {BYTES // 2})"
        made = f"INSERT INTO `long`.t VALUES {', '.join(f'({n}, {values})' for n in range(rows))}"
    name = "long" if server.kind == "postgresql" else "`long`"
    server.run([
        f"DROP SCHEMA IF EXISTS {name}{cascade}", f"CREATE SCHEMA {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, b {blob}, t {text})", made,
    ])  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_value_is_whole_and_has_a_digest(
    kind: str, servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    """MariaDB would give null for its hex, and say so in a warning alone."""
    server = servers[kind]
    filled(server, 1)
    value = b"\x00\xff" * (BYTES // 2)
    database = server.open()
    try:
        table = database.describe(LONG)
        columns = [ChunkColumn("id", "int", Form.WHOLE), ChunkColumn("b", "binary", Form.HEX)]
        columns.append(ChunkColumn("t", "string", Form.TEXT))
        part = ChunkQuery(database.query(table, table.columns), tmp_path / "a.parquet")
        assert read_chunks(spark, database.jdbc(table), [part], columns) == [1]
        (row,) = pq.read_table(part.out).to_pylist()
        assert row["b"] == value
        assert row["t"] == "ü" * (BYTES // 2)
        blob = table.column("b")
        digest = f"sha256:{sha256(value).hexdigest()}"
        sql = f"SELECT {database.compared(blob)} FROM {database.table_sql(table)}"
        assert database.ask(sql) == [(digest,)]
        ((number,),) = database.ask(f"SELECT id FROM {database.table_sql(table)}")
        key = (str(number),)
        assert database.rows(table, [blob], [key]) == {key: (digest,)}
        stored = spark.read.parquet(str(part.out)).selectExpr(printed(Form.HEX, "binary", "b"))
        assert stored.first()[0] == digest
    finally:
        database.close()


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_long_values_fit_into_memory(
    kind: str, servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    """1.9 GB of values through a JVM of two, two parts at once."""
    server = servers[kind]
    filled(server, 80)
    database = server.open()
    try:
        table = database.describe(LONG)
        columns = [ChunkColumn("id", "int", Form.WHOLE), ChunkColumn("b", "binary", Form.HEX)]
        columns.append(ChunkColumn("t", "string", Form.TEXT))
        ranges = [*database.ranges(table, 40)]
        parts = [
            ChunkQuery(database.query(table, table.columns, each), tmp_path / f"{place}.parquet")
            for place, each in enumerate(ranges)
        ]
        rows = read_chunks(spark, database.jdbc(table), parts, columns)
        assert sum(rows) == 80
        lengths = pc.sum(pc.binary_length(pq.read_table(parts[0].out).column("b"))).as_py()
        assert lengths == rows[0] * BYTES
    finally:
        database.close()


def test_a_server_of_small_packets_is_refused(servers: dict[str, Server]) -> None:
    """Texts in hex of a megabyte would be null."""
    server = servers["mariadb"]
    server.run(["SET GLOBAL max_allowed_packet = 1048576"])
    try:
        database = server.open()
        with pytest.raises(DatabaseRefused, match="SET GLOBAL max_allowed_packet = 4194304"):
            database.ask("SELECT 1")
        with pytest.raises(DatabaseRefused):  # again: it is not taken for a good one
            database.ask("SELECT 1")
    finally:
        server.run(["SET GLOBAL max_allowed_packet = 16777216"])

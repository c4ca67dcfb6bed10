"""A table that somebody has locked: no statement waits longer than its time, also not Spark's first
one, which asks for the columns before the session is set up."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from changes.model.model import TableName
from changes.sql.forms import Form
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery, ChunkUnreadable
from tests.databases.base.servers import Server, within

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("drivers")]

HELD = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"


def test_a_locked_table_is_given_up_when_the_statements_time_is_up(
    servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    """By the server, with its words: the silence that ends a connection is a minute longer."""
    server = servers["mariadb"]
    server.run([
        "CREATE OR REPLACE SCHEMA locked", "CREATE TABLE locked.t (id INT PRIMARY KEY)",
        "INSERT INTO locked.t VALUES (1)",
    ])  # fmt: skip
    database = server.open(statement_timeout_s=1.0)
    held = Thread(target=server.run, args=(["LOCK TABLES locked.t WRITE", "SELECT SLEEP(6)"],))
    try:
        table = database.describe(TableName("locked", "t"))
        part = ChunkQuery(database.query(table, table.columns), tmp_path / "a.parquet")
        held.start()
        within(10, lambda: bool(database.ask(HELD)))
        with pytest.raises(ChunkUnreadable, match="max_statement_time") as told:
            read_chunks(spark, database.jdbc(table), [part], [ChunkColumn("id", "int", Form.WHOLE)])
        assert told.value.again
    finally:
        held.join()
        database.close()

"""A server that has no room or memory is asked again later: by readers as by sinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from changes.sql.forms import Form
from databases.base.errors import MYSQL_FULL, Cause, DatabaseAway, DatabaseError, DatabaseRefused
from databases.base.url import parse_url
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.requests import ChunkColumn, ChunkQuery, ChunkUnreadable
from sparkwriter.sql.connect import connect
from tests.databases.base.servers import Server

pytestmark = pytest.mark.integration

SAID = {
    **dict.fromkeys(sorted(MYSQL_FULL), "no room"),
    1: "Can't create/write to file '/tmp/x' (Errcode: 28 \"No space left on device\")",
    1005: 'Can\'t create table `s`.`t` (errno: 28 "No space left on device")',
    3: "Error writing file '/tmp/MLfd=47' (Errcode: 28)",
}
"""By the server's number what it says."""


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    """A server with a function for each, which ends with that very error."""
    found = servers[request.param]
    found.run(["DROP SCHEMA IF EXISTS full", "CREATE SCHEMA full",
               "SET GLOBAL log_bin_trust_function_creators = 1",
               "GRANT EXECUTE ON *.* TO jobs@'%'"])  # fmt: skip
    session = connect(parse_url(f"jdbc:{found.kind}://127.0.0.1:{found.port}/"), "live", "live")
    for number, text in {**SAID, 1690: "out of range"}.items():
        quoted = text.replace("'", "''")
        session.run(
            f"CREATE FUNCTION full.f{number}() RETURNS INT BEGIN SIGNAL SQLSTATE 'HY000'"
            f" SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = '{quoted}'; RETURN 1; END"
        )
    session.close()
    return found


def test_readers_and_sinks_come_again(server: Server) -> None:
    """Nothing is given up, and no target refused. Another error is one."""
    url = parse_url(f"jdbc:{server.kind}://127.0.0.1:{server.port}/")
    database, session = server.open(), connect(url, "live", "live")
    try:
        for number in SAID:
            with pytest.raises(DatabaseAway):
                database.ask(f"SELECT full.f{number}()")
            with pytest.raises(DatabaseError) as told:
                session.rows(f"SELECT full.f{number}()")
            assert told.value.cause is Cause.LATER, number
        with pytest.raises(DatabaseRefused):
            database.ask("SELECT full.f1690()")
    finally:
        database.close()
        session.close()


@pytest.mark.usefixtures("drivers")
@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_sparks_read_is_repeated(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    """By its text: the driver's classes say nothing of it."""
    database = server.open()
    try:
        part = ChunkQuery(
            "SELECT CAST(full.f3() AS CHAR) AS c0 FROM (SELECT 1) x", tmp_path / "a.parquet"
        )
        with pytest.raises(ChunkUnreadable) as told:
            read_chunks(spark, database.jdbc(), [part], [ChunkColumn("id", "int", Form.WHOLE)])
        assert told.value.again
    finally:
        database.close()

"""Behind a pooler that gives each transaction another session, the settings are not there: found at
the first statement that meets such a session, and refused by name."""

from __future__ import annotations

import pytest

from databases.base.errors import DatabaseError, DatabaseRefused
from databases.base.session import transaction
from databases.base.url import parse_url
from sparkwriter.sql.connect import connect
from tests.databases.base.pooler import pooled
from tests.databases.base.servers import Server, opened

pytestmark = pytest.mark.integration

POOLED = "a pooler between binlogd and the server gives each transaction any session"


def test_a_reader_behind_a_pooler_in_transaction_mode_is_refused(
    servers: dict[str, Server],
) -> None:
    """Rows in another zone's time, or those that a policy leaves, would be taken for the truth."""
    server = servers["postgresql"]
    with pooled(server.port) as port:
        section = server.section()
        url = section.url.replace(str(server.port), str(port))
        database = opened(section.model_copy(update={"url": url}))

        def zones() -> None:
            for _ in range(3):
                assert database.ask("SELECT current_setting('TimeZone')") == [("UTC",)]

        def streams() -> None:
            for _ in range(3):
                sql = "SELECT current_setting('row_security')"
                assert list(database.stream(sql, 1)) == [[("off",)]]

        for act in (zones, streams):
            with pytest.raises(DatabaseRefused, match=POOLED):
                act()
        database.close()


def test_a_sink_behind_a_pooler_in_transaction_mode_writes_nothing(
    servers: dict[str, Server],
) -> None:
    """Before the first statement of the transaction."""
    with pooled(servers["postgresql"].port) as port:
        session = connect(parse_url(f"jdbc:postgresql://127.0.0.1:{port}/postgres"), "jobs", None)

        def write() -> None:
            for _ in range(3):
                with transaction(session):
                    assert session.rows("SHOW row_security") == [("off",)]

        with pytest.raises(DatabaseError, match=POOLED):
            write()
        session.close()


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_another_session_of_mysqls_is_found(kind: str, servers: dict[str, Server]) -> None:
    """By the mark that is not there: a proxy that shares sessions gives one of its own."""
    server = servers[kind]
    database = server.open()
    assert database.ask("SELECT 1") == [(1,)]
    database.ask("SET @binlogd_session = NULL")
    with pytest.raises(DatabaseRefused, match=POOLED):
        database.ask("SELECT 1")
    assert database.ask("SELECT 1") == [(1,)]
    database.close()
    session = connect(parse_url(f"jdbc:{kind}://127.0.0.1:{server.port}/"), "live", "live")
    session.run("SET @binlogd_session = NULL")
    with pytest.raises(DatabaseError, match=POOLED), transaction(session):
        session.run("DO 1")
    session.close()

"""Each session variable of each server is pinned, or left as it is for a reason that is written
down: what the server, its role or its database sets changes nothing of what is read and written."""

from __future__ import annotations

import pytest

from databases.base.session_settings import Server as Kind
from databases.base.session_settings import reading, writing
from tests.databases.base.settings_left import LEFT, left
from tests.sparkwriter.databases import Server

SETTABLE: dict[Kind, str] = {
    "postgresql": "SELECT name FROM pg_settings WHERE context IN ('user', 'superuser')",
    "mariadb": "SELECT LOWER(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES"
    " WHERE VARIABLE_SCOPE <> 'GLOBAL' AND READ_ONLY = 'NO'",
    "mysql": "SELECT VARIABLE_NAME FROM performance_schema.variables_metadata"
    " WHERE VARIABLE_SCOPE <> 'GLOBAL'",
}
SHOWN = {
    "error_count",
    "warning_count",
    "external_user",
    "proxy_user",
    "gtid_owned",
    "statement_id",
}
"""Of MySQL: nobody can set them."""


@pytest.fixture(params=["postgres", "mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Server:
    """Each in turn, MySQL too: asking costs little."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def kind(server: Server) -> Kind:
    """What it is called by the settings."""
    word = server.url.split(":")[1]
    assert word in ("postgresql", "mariadb", "mysql")
    return word


def test_no_variable_of_the_server_is_unknown(server: Server, kind: Kind) -> None:
    """A new version's is looked at before anybody runs it."""
    session = server.connect()
    names = {str(name) for (name,) in session.rows(SETTABLE[kind])} - SHOWN
    session.close()
    pinned = reading(kind).keys() | writing(kind).keys()
    assert len(names) > 100
    assert not {name for name in names - pinned if not left(kind, name)}


def test_no_variable_is_pinned_and_left(kind: Kind) -> None:
    """A reason to leave it would be none."""
    pinned = reading(kind).keys() | writing(kind).keys()
    assert not {n for names in LEFT[kind].values() for n in names.split()} & pinned

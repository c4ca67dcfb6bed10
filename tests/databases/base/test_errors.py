"""What an error asks for is one table: a job that reads and a sink that writes agree on it."""

from __future__ import annotations

import pytest

from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused, WaitsForRows
from databases.base.errors import (
    Cause,
    DatabaseAway,
    DatabaseRefused,
    cause_of_mysql,
    cause_of_postgresql,
    database_error,
)
from sparkwriter.sql.base.session import for_port

MYSQL = {
    1205: Cause.LATER, 1412: Cause.LATER, 1114: Cause.LATER, 2013: Cause.AWAY, 0: Cause.AWAY,
    1053: Cause.AWAY, 1045: Cause.SERVER, 1290: Cause.READ_ONLY, 1062: Cause.UNIQUE,
    1792: Cause.READ_ONLY, 1451: Cause.OTHER_ROW, 1146: Cause.REFUSED, 1690: Cause.REFUSED,
}  # fmt: skip
POSTGRESQL = {
    "53100": Cause.LATER, "53300": Cause.AWAY, "57014": Cause.LATER, "57P01": Cause.AWAY,
    "55P03": Cause.LATER, "55000": Cause.SERVER, "28P01": Cause.SERVER, "3D000": Cause.SERVER,
    "XX001": Cause.SERVER, "23505": Cause.UNIQUE, "23503": Cause.OTHER_ROW,
    "23502": Cause.REFUSED, "42P01": Cause.REFUSED, "25006": Cause.READ_ONLY,
    "25P03": Cause.AWAY, "25P04": Cause.AWAY,
}  # fmt: skip


@pytest.mark.parametrize("number", MYSQL)
def test_numbers_of_mysql(number: int) -> None:
    assert cause_of_mysql(number, "said") is MYSQL[number]


@pytest.mark.parametrize("state", POSTGRESQL)
def test_states_of_postgresql(state: str) -> None:
    assert cause_of_postgresql(state, of_connection=True) is POSTGRESQL[state]


def test_errors_of_the_clients_own() -> None:
    """A connection that ends has no number; a value that can't be sent has none either."""
    assert cause_of_postgresql(None, of_connection=True) is Cause.AWAY
    assert cause_of_postgresql(None, of_connection=False) is Cause.REFUSED
    assert cause_of_mysql(None, "Packet sequence number wrong") is Cause.AWAY


def test_a_full_disk_is_later_whatever_its_number() -> None:
    text = "Error writing file '/tmp/MLfd=47' (Errcode: 28)"
    assert {cause_of_mysql(number, text) for number in (3, 1005, 1690, None)} == {Cause.LATER}


@pytest.mark.parametrize(
    ("cause", "job", "sink"),
    [
        (Cause.AWAY, DatabaseAway, SinkUnavailable),
        (Cause.LATER, DatabaseAway, SinkUnavailable),
        (Cause.OTHER_ROW, DatabaseAway, WaitsForRows),
        (Cause.SERVER, DatabaseRefused, SinkUnavailable),
        (Cause.READ_ONLY, DatabaseAway, SinkAway),
        (Cause.UNIQUE, DatabaseRefused, TargetRefused),
        (Cause.REFUSED, DatabaseRefused, TargetRefused),
    ],
)
def test_a_job_ends_or_comes_again_and_so_does_a_sink(cause: Cause, job: type, sink: type) -> None:
    """A login that is refused ends a job; a stream waits until somebody has mended it."""
    error = database_error(cause, "two\n lines")
    assert type(error) is job
    assert type(for_port(error)) is sink
    assert str(for_port(error)) == "two lines"

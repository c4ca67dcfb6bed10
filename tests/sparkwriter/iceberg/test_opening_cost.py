"""What an opening costs: after a restart with a thousand tables there are a thousand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import LANE, Staging

CALLS = 40
"""26 as it stands. A Java collection that is iterated over is 80 more: its end is an exception."""

FORGET = "m\n"
"""How py4j tells the JVM of an object that Python holds no more: about earlier calls' objects."""


def test_a_first_opening_asks_the_jvm_little(
    spark: SparkSession,
    writer: IcebergWriter,
    staging: Staging,
    orders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each question is a way to the JVM and back, and a thousand openings take their time."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 0))
    other = staging.target._replace(table=f"{staging.target.table}_other")
    writer.write(replace(staging.batch(orders(("U", 1, "a", 1)), 1, after=-1), target=other))
    restarted = IcebergWriter(spark)
    restarted.open(other)  # finds the catalog and Java's classes
    asked = itertools.count()
    send = ClientServerConnection.send_command

    def counted(self: ClientServerConnection, command: str) -> str:
        if not command.startswith(FORGET):
            next(asked)
        return str(send(self, command))

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    assert restarted.open(staging.target).hwms == {LANE: 0}
    assert next(asked) <= CALLS

"""Names of Java are looked up once, and mean the same as without that."""

from __future__ import annotations

import itertools

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from sparkwriter.session.java_api import JavaNames


def test_a_name_is_asked_for_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time only the method itself is called, of a class or of what it makes."""
    names = JavaNames(spark.sparkContext._jvm)
    assert names.java.lang.Integer.valueOf("7") == 7
    assert str(names.java.lang.StringBuilder("x").append("y").toString()) == "xy"
    asked = itertools.count()
    send = ClientServerConnection.send_command

    def counted(self: ClientServerConnection, command: str) -> str:
        if not command.startswith("m\n"):  # of an object that Python holds no more
            next(asked)
        return str(send(self, command))

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    assert names.java.lang.Integer.valueOf("8") == 8
    assert next(asked) == 1


def test_a_value_is_not_kept(spark: SparkSession) -> None:
    """Only what never changes: a field is read at each turn."""
    names = JavaNames(spark.sparkContext._jvm)
    assert names.java.lang.Integer.MAX_VALUE == 2**31 - 1
    assert "MAX_VALUE" not in vars(names.java.lang.Integer)

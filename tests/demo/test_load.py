"""The load's demo: its configuration, and what it plants."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.model import TableName
from daemon.config.file import load
from demo.load.__main__ import PLANTED, ROWS_PLANTED
from demo.load.daemon import write_config
from demo.load.shop import TABLES, columns_of, keys_of


def test_its_configuration_is_legal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded default with a database; the heartbeat's table has no target."""
    monkeypatch.setenv("BINLOGD_VAR", str(tmp_path))
    config = load(write_config(tmp_path, 3306))
    assert config.database_of("shop", "shop") == "shop"
    (route,) = config.routes("shop")
    assert route.takes(TableName("shop", "codes"))
    assert not route.takes(TableName("shop", "beat"))


def test_ten_differences_are_planted() -> None:
    """A key that is changed makes two rows that differ."""
    assert len(PLANTED) == 10
    assert ROWS_PLANTED == 11


def test_keys_come_first() -> None:
    """Of numbers, of a text, of two columns."""
    assert {keys_of(table) for table in TABLES} == {("id",), ("code",), ("id", "line")}
    assert all(columns_of(table)[: len(keys_of(table))] == keys_of(table) for table in TABLES)

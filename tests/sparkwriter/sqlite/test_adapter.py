"""A file of SQLite as a configured sink: what is tried, and when a write is late."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from daemon.cli.__main__ import app
from sparkwriter.sqlite.store import SqliteStore
from tests.databases.base.test_section import SHOP
from tests.sparkwriter.test_sections import SQLITE


def check(folder: Path, text: str = SQLITE) -> Result:
    path = folder / "config.toml"
    path.write_text(text)
    return CliRunner().invoke(app, ["check-config", "--config", str(path)])


def test_neither_java_nor_jars_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is written with Spark."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = check(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"sink copy: sqlite; path = {tmp_path}/copy.db" in result.stdout
    assert check(tmp_path, SQLITE.replace('"sqlite"', '"iceberg"')).exit_code == 2


def test_no_driver_is_asked_for_where_no_sink_uses_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database is read by binlogd itself then."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path / "nowhere"))
    (tmp_path / "secret").write_text("word")
    (tmp_path / "secret").chmod(0o600)
    result = check(tmp_path, SQLITE + SHOP)
    assert result.exit_code == 0, result.output
    assert "database shop: jdbc:mysql://db.example.com/" in result.stdout


def test_sparks_section_without_a_use_is_told(tmp_path: Path) -> None:
    result = check(tmp_path, '[spark]\nmaster = "local[1]"' + SQLITE)
    assert "spark: no sink is written with it, so none is started" in result.stderr


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none" / "copy.db"
    with pytest.raises(SinkUnavailable, match=str(path)):
        SqliteStore(path)


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """And the file is as it was."""
    store = SqliteStore(tmp_path / "copy.db", timeout_s=0.2)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with (
        pytest.raises(SinkUnavailable, match=r"copy\.shop\.orders: interrupted"),
        store.call(TargetName("copy", "shop", "orders")),
    ):
        store._connection.execute(endless)
    with store.call(TargetName("copy", "shop", "orders")):
        store.look(TargetName("copy", "shop", "orders"))


def test_a_lock_that_another_holds_is_waited_for_no_longer_than_a_call_may_take(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "copy.db", timeout_s=0.2)
    other = sqlite3.connect(tmp_path / "copy.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    target = TargetName("copy", "shop", "orders")
    with pytest.raises(SinkUnavailable, match="locked"), store.call(target):
        store.free(target, "x")
    other.close()


def test_the_configuration_is_read_without_spark(tmp_path: Path) -> None:
    """Commands that only read it start in a moment: no module of Spark's is imported."""
    (tmp_path / "config.toml").write_text(SQLITE)
    code = (
        "import sys; from pathlib import Path; from daemon.config.file import load; "
        f"load(Path({str(tmp_path / 'config.toml')!r})); "
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')])"
    )
    made = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert made.stdout == "[]\n"

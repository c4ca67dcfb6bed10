"""Options of formats as files of 0.1.0 have them: beside ``format``. One release more."""

from __future__ import annotations

from pathlib import Path

from daemon.config.file import load
from daemon.operations.checks.check import warnings

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:9092"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:var/catalog.db"
warehouse = "var/warehouse"
[pipeline.shop]
topics = ["shop"]
format = "debezium-json"
target = "lake.{database}.{table}"
"""
OPTIONS = """
default_database = "d"
default_table = "t"
unavailable_value = "hex:00ff"
tombstones = "repeat"
positions = "postgres-lsn"
"""


def test_they_mean_what_they_meant_and_each_line_is_named(tmp_path: Path) -> None:
    before, now = tmp_path / "before.toml", tmp_path / "now.toml"
    before.write_text(TEXT + OPTIONS)
    now.write_text(f"{TEXT}[pipeline.shop.options]\n{OPTIONS}")
    old, new = load(before, {}), load(now, {})
    assert old.pipeline["shop"].format_options() == new.pipeline["shop"].format_options()
    moved = [line for line in warnings(old, before) if "pipeline.shop.options]" in line]
    names = ("default_database", "default_table", "unavailable_value", "tombstones", "positions")
    assert [line.split(":")[0] for line in moved] == [f"pipeline.shop.{name}" for name in names]
    assert not [line for line in warnings(new, now) if "options" in line]

"""The configuration that is written: what every command reads, and nothing of it a secret."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daemon.cli.base.address import parse_address
from daemon.cli.init.text import TablesPlace
from daemon.cli.replicate.text import Wanted, configuration, unit
from daemon.config.config import Config
from daemon.config.file import load
from tests.needs import tool


def wanted(source: str = "mysql://reader@db.example/shop", **more: object) -> Wanted:
    found = {
        "source": parse_address(source, "the source"),
        "password": "${file:pw}",
        "place": TablesPlace("lake"),
        "patterns": ("shop.*",),
        "left_out": ("shop.log", "shop.a[[]b"),
        "listen": "127.0.0.1:9464",
    }
    return Wanted(**(found | more))  # type: ignore[arg-type]


def loaded(folder: Path, text: str) -> Config:
    (folder / "pw").write_text("a word")
    (folder / "config.toml").write_text(text)
    return load(folder / "config.toml")


@pytest.mark.parametrize("broker", [None, "127.0.0.1:9092"])
def test_every_command_reads_it(tmp_path: Path, broker: str | None) -> None:
    """Source, collector, pipeline and sink belong together."""
    config = loaded(tmp_path, configuration(wanted(broker=broker)))
    pipeline = config.pipeline["shop"]
    assert (pipeline.topics, pipeline.format, pipeline.database) == (
        ["shop"], "debezium-json", "shop",
    )  # fmt: skip
    assert config.database["shop"].password == "a word"
    assert config.collector["shop"].database == "shop"
    assert pipeline.exclude == ["shop.log", "shop.a[[]b"]
    assert config.daemon.state_dir == tmp_path / "binlogd" / "state"
    assert pipeline.loads_unasked


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (TablesPlace("lake"), "iceberg"),
        (TablesPlace("a file", said="sqlite"), "sqlite"),
        (TablesPlace("postgresql://h/x", user="w", password="${file:pw}"), "jdbc"),
        (TablesPlace("s3://b/x", "http://127.0.0.1:8181"), "iceberg"),
    ],
)
def test_places_for_tables(tmp_path: Path, place: TablesPlace, kind: str) -> None:
    config = loaded(tmp_path, configuration(wanted(place=place, broker="127.0.0.1:1")))
    assert config.sink["lake"].kind == kind


def test_postgresql_has_its_publication(tmp_path: Path) -> None:
    """Otherwise the connector would make one, which takes more rights than reading."""
    source = "postgresql://reader@db.example/shop"
    text = configuration(wanted(source, publication="binlogd", tls="off", broker="127.0.0.1:1"))
    section = loaded(tmp_path, text).database["shop"]
    assert (section.publication, section.tls) == ("binlogd", "off")


def test_names_are_hostile(tmp_path: Path) -> None:
    """Whatever a database, a user or a table is called."""
    hostile = 'a"b.c\\d\n[x]\x7f'
    source = "mysql://r%22%5Bx%5D@h/shop%22%5Bx%5D"
    text = configuration(wanted(source, patterns=(hostile,), broker="127.0.0.1:1"))
    config = loaded(tmp_path, text)
    assert config.pipeline["shop-x"].include == [hostile]
    assert config.database["shop-x"].user == 'r"[x]'


def test_a_unit_goes_on_with_it(tmp_path: Path) -> None:
    """systemd takes it as it is."""
    program = tmp_path / "binlogd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = unit("shop", "daemon", str(tmp_path), str(program))
    assert f"ExecStart={program} run --config {tmp_path}/config.toml\n" in text
    file = tmp_path / "binlogd-shop.service"
    file.write_text(text)
    done = subprocess.run(
        [tool("systemd-analyze"), "verify", file], capture_output=True, text=True, check=False
    )
    assert "binlogd-shop" not in done.stderr

"""``[sink.NAME]``: each kind has its keys, and says what it does not take."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from sparkwriter.sections import KINDS, AnySink
from sparkwriter.sqlite.section import SqliteSection
from tests.test_ratchet import graph

ROOT = Path(__file__).parents[2]

SQLITE = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "copy.{database}.{table}"
"""


def read(folder: Path, text: str = SQLITE) -> Config:
    path = folder / "config.toml"
    path.write_text(text)
    return load(path, {})


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(folder, text)
    return [line.removeprefix(f"{folder}/config.toml: ") for line in error.value.problems]


def test_a_path_counts_from_the_configuration(tmp_path: Path) -> None:
    section = read(tmp_path).sink["copy"]
    assert isinstance(section, SqliteSection)
    assert section.path == tmp_path / "copy.db"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'kind = "sqlite"',
            'kind = "excel"',
            f"sink.copy.kind: 'excel' is none of {', '.join(sorted(KINDS))}",
        ),
        (
            'kind = "sqlite"',
            "",
            f"sink.copy.kind: missing; allowed: {', '.join(sorted(KINDS))}",
        ),
        ('path = "copy.db"', "", "sink.copy.path: missing"),
        (
            'path = "copy.db"',
            'path = "copy.db"\ncatalog.uri = "x"',
            "sink.copy.catalog: unknown key (line 7); allowed: kind, path, write_timeout_s",
        ),
        (
            'format = "canal-json"',
            'format = "canal-json"\nwrite = "equality"',
            "pipeline.shop: target 'copy.{database}.{table}': write: 'equality'; a sink of kind "
            "sqlite has no choice",
        ),
    ],
)
def test_what_the_kind_does_not_take(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert problems(tmp_path, SQLITE.replace(old, new)) == [said]


def test_a_key_of_a_section_inside_is_named_with_its_neighbours(tmp_path: Path) -> None:
    section = "catalog = {}\nmaintenance.often = 1"
    text = SQLITE.replace('"sqlite"', '"iceberg"').replace('path = "copy.db"', section)
    (said,) = problems(tmp_path, text)
    assert said.startswith(
        "sink.copy.maintenance.often: unknown key (line 7); allowed: expire_snapshots"
    )


def test_every_kind_is_read_and_made() -> None:
    """The table of kinds and the union are of the same sections, each beside its adapter."""
    assert set(KINDS.values()) == set(get_args(get_args(AnySink)[0]))
    for section in KINDS.values():
        folder = section.__module__.rpartition(".")[0]
        assert callable(import_module(f"{folder}.adapter").make_sink)


SINKS = {path.parent.name for path in (ROOT / "sparkwriter").glob("*/adapter.py")}


def test_a_sink_is_imported_by_the_registry_alone() -> None:
    """And knows the kit and Spark's session, no other sink, and nothing above."""
    assert {section.__module__.split(".")[1] for section in KINDS.values()} == SINKS
    below, above = {"kit", "session"}, {"sections", "sinks", "spark_sessions"}
    for name, others in graph().items():
        top, _, rest = name.partition(".")
        room = rest.split(".")[0] if top == "sparkwriter" else top
        if room in above or top == "demo":
            continue
        found = {other.split(".")[1] for other in others if other.startswith("sparkwriter.")}
        if room in SINKS:
            assert found <= {room, *below}, name
        else:
            assert not found & SINKS, name


def test_writers_are_the_daemons(tmp_path: Path) -> None:
    """``spark.writers`` says the same, where ``daemon.writers`` is not set."""
    assert read(tmp_path, "[daemon]\nwriters = 5" + SQLITE).daemon.writers == 5
    assert read(tmp_path, "[spark]\nwriters = 6" + SQLITE).daemon.writers == 6
    assert 2 <= read(tmp_path).daemon.writers <= max(2, min(8, len(os.sched_getaffinity(0))))
    (said,) = problems(tmp_path, "[spark]\nwriters = 6\n[daemon]\nwriters = 5" + SQLITE)
    assert said == "daemon.writers and spark.writers say the same: set daemon.writers"
    (said,) = problems(tmp_path, "[spark]\nwriters = 0" + SQLITE)
    assert said.startswith("daemon.writers: Input should be greater than or equal to 1")


@pytest.mark.parametrize("section", ["spark", "daemon"])
def test_a_section_that_is_none_is_named(tmp_path: Path, section: str) -> None:
    """Also where the other one has the writers."""
    other = "[spark]\nwriters = 6" if section == "daemon" else ""
    (said,) = problems(tmp_path, f"{section} = 5\n{other}{SQLITE}")
    assert said.startswith(f"{section}: ")

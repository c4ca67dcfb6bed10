"""``cut_every`` and ``[pipeline.NAME.cuts]``: of which pipelines cuts can be, and where they are
listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.model import TargetName
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.checks import check
from daemon.operations.checks.check_cuts import planned_cuts
from offsets.cuts import KeepCuts

TEXT = """
[kafka]
"bootstrap.servers" = "h:1"
[sink.lake]
kind = "iceberg"
catalog = {type = "hadoop", warehouse = "w"}
[sink.other]
kind = "iceberg"
catalog = {type = "hadoop", warehouse = "v"}
[sink.copy]
kind = "sqlite"
path = "copy.db"
[sink.base]
kind = "jdbc"
url = "postgresql://h/d"
[pipeline.p]
topics = ["t"]
format = "canal-json"
"""
JDBC = 'type = "jdbc", uri = "jdbc:sqlite:c.db"'
BASE = 'target = "base.{database}.{table}"\n'
ALL = 'target = "lake.{database}.{table}"\n'
TWO = '[[pipeline.p.route]]\ntarget = "lake.a.b"\n[[pipeline.p.route]]\ntarget = "other.a.b"\n'
SQLITE = '[[pipeline.p.route]]\ntarget = "lake.a.b"\n[[pipeline.p.route]]\ntarget = "copy.a.b"\n'
SECOND = """
[pipeline.q]
topics = ["u"]
format = "canal-json"
include = ["other.*"]
target = "lake.{database}.{table}"
cut_every = "5m"
"""


def read(folder: Path, text: str) -> Config:
    (folder / "c.toml").write_text(TEXT + text)
    return load(folder / "c.toml")


def test_without_the_key_there_are_none(tmp_path: Path) -> None:
    section = read(tmp_path, ALL).pipeline["p"]
    assert (section.cut_every, section.cuts_table) == (None, None)


def test_one_key_is_enough(tmp_path: Path) -> None:
    """The table is in the pipeline's only sink."""
    section = read(tmp_path, 'cut_every = "60s"\n' + ALL).pipeline["p"]
    assert (section.cut_every, section.cuts.wait) == (60, 10)
    assert section.cuts.keep == KeepCuts(3600, 7)
    assert section.cuts_table == TargetName("lake", "binlogd", "cuts")
    plan = [*check.plan(read(tmp_path, 'cut_every = "60s"\n' + ALL))]
    assert "  a cut every 60 s, listed in lake.binlogd.cuts" in plan


def test_all_can_be_said(tmp_path: Path) -> None:
    own = 'cuts = {table = "other.own.`a.b`", recent = "2h", hourly_days = 0, wait = "1m", '
    own += 'incomplete = "skip"}\n'
    section = read(tmp_path, 'cut_every = "1h"\n' + own + TWO).pipeline["p"]
    assert section.cuts_table == TargetName("other", "own", "a.b")
    assert (section.cuts.keep, section.cuts.wait) == (KeepCuts(7200, 0), 60)
    assert section.cuts.incomplete == "skip"


def test_two_pipelines_may_have_tables_of_their_own(tmp_path: Path) -> None:
    both = 'cut_every = "60s"\ninclude = ["a.*"]\n' + ALL + SECOND + 'cuts.table = "lake.b.q"\n'
    found = read(tmp_path, both).pipeline
    assert {str(each.cuts_table) for each in found.values()} == {"lake.binlogd.cuts", "lake.b.q"}


def test_tables_of_a_database_go_from_cut_to_cut(tmp_path: Path) -> None:
    """By choice, and those of a lake beside them by their versions."""
    atomic = 'cut_every = "1m"\ncuts.atomic = true\n'
    alone = read(tmp_path, atomic + BASE)
    assert PipelineConfig(alone, "p").together == {"base"}
    assert str(alone.pipeline["p"].cuts_table) == "base.binlogd.cuts"
    both = SQLITE.replace("copy.a.b", "base.a.b")
    found = read(tmp_path, atomic.replace("true", 'true\ncuts.table = "base.b.c"') + both)
    assert PipelineConfig(found, "p").together == {"base"}
    assert PipelineConfig(read(tmp_path, ALL), "p").together == frozenset()


@pytest.mark.parametrize(
    "catalog",
    [JDBC, 'catalog-impl = "org.apache.iceberg.jdbc.JdbcCatalog", uri = "jdbc:mysql://h"'],
)
def test_so_do_those_of_a_lake_whose_catalog_is_one(tmp_path: Path, catalog: str) -> None:
    """Beside them those of another lake come one by one, and `check-config` says so."""
    cuts = 'cut_every = "1m"\ncuts = {atomic = true, table = "lake.b.c"}\n'
    text = (TEXT + cuts + TWO).replace('type = "hadoop"', catalog, 1)
    (tmp_path / "c.toml").write_text(text)
    found = load(tmp_path / "c.toml")
    pipeline = PipelineConfig(found, "p")
    assert (pipeline.together, pipeline.apart) == ({"lake"}, {"other"})
    assert pipeline.together <= pipeline.versioned
    assert [*planned_cuts(found, "p")][1:] == [
        "  at a cut all tables change in one transaction: lake",
        "  at a cut tables change one by one, and are tagged: other",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('cut_every = "0.5s"\n' + ALL, "cut_every"),
        ('cuts.recent = "2h"\n' + ALL, "cuts: no cut is made without cut_every"),
        ('cut_every = "1m"\ncuts.table = "cuts"\n' + ALL, "not a target's name"),
        ('cut_every = "1m"\ncuts.wait = 0\n' + ALL, "cuts.wait"),
        ('cut_every = "1m"\n' + TWO, 'writes to lake, other: say where .* "lake.binlogd.cuts"'),
        ('cut_every = "1m"\ncuts.table = "lake.b.c"\n' + SQLITE, "copy keeps no former versions"),
        ('cut_every = "1m"\ncuts.table = "copy.b.c"\n' + ALL, "'copy.b.c': sink copy is of kind"),
        ('cut_every = "1m"\ncuts.table = "nix.b.c"\n' + ALL, "'nix.b.c' names no sink; have: base"),
        ('cut_every = "1m"\ncuts.table = "other.a.b"\n' + TWO, "'other.a.b' is a route's target"),
        ('cut_every = "1m"\n' + BASE, "sink base keeps no former versions.*cuts.atomic = true"),
        ('cut_every = "1m"\ncuts.atomic = true\n' + ALL, "the pipeline writes to none"),
        ('counts = "counts"\n' + ALL, "not a target's name"),
        ('counts = "nix.b.c"\n' + ALL, "p.counts: 'nix.b.c' names no sink; have: base, copy"),
        ('counts = "other.a.b"\n' + TWO, "p.counts: 'other.a.b' is a route's target"),
        (
            'cut_every = "1m"\ncounts = "lake.binlogd.cuts"\n' + ALL,
            "p.counts: 'lake.binlogd.cuts' is pipeline.p.cuts.table's already",
        ),
        (
            'cut_every = "1m"\ninclude = ["a.*"]\n' + ALL + SECOND,
            "pipeline.q.cuts.table: 'lake.binlogd.cuts' is pipeline.p.cuts.table's already",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, text)

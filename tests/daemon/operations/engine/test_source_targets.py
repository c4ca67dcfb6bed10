"""Which tables patterns choose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from changes.model.model import TableName
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine import source_targets as targets
from daemon.operations.engine.source_targets import Chosen, chosen, unmatched

TABLES = [TableName("s", name) for name in ("a", "b", "no_key")]


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Config:
    """With three tables in one database."""
    monkeypatch.setattr(targets, "_tables", lambda *_: [("shop", table) for table in TABLES])
    lake = {"kind": "iceberg", "catalog": {"type": "hadoop", "warehouse": "w"}}
    route = {"topics": ["t"], "format": "canal-json", "include": ["*"]}
    return Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "nowhere:1"},
            "sink": {"lake": lake},
            "pipeline": {"p": route | {"target": "lake.{database}.{table}"}},
            "daemon": {"state_dir": str(tmp_path)},
        }
    )


def names(found: Chosen) -> list[str]:
    return [str(one.table) for one in found.tables]


@pytest.mark.parametrize(
    ("patterns", "tables", "missing"),
    [
        (["s.*"], ["s.a", "s.b", "s.no_key"], []),
        (["lake.s.a"], ["s.a"], []),
        (["s.*", "!s.no_key"], ["s.a", "s.b"], []),
        (["!lake.s.no_*", "s.*"], ["s.a", "s.b"], []),
        (["s.*", "!s.nokey"], ["s.a", "s.b", "s.no_key"], ["!s.nokey"]),
        (["s.x", "s.a"], ["s.a"], ["s.x"]),
        (["!s.a"], [], []),
    ],
)
def test_an_exclusion_wins_wherever_it_stands(
    config: Config, patterns: Sequence[str], tables: list[str], missing: list[str]
) -> None:
    """One that excludes nothing is told, like a pattern that chooses nothing."""
    found = chosen(PipelineConfig(config, "p"), patterns)
    assert names(found) == tables
    assert unmatched(patterns, found) == missing

"""What the daemon is started with, and the lists of the readers' jars."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from actors.runtime.jars import read_lock
from daemon.config.file import load
from tests.live.daemon import Pipeline, configuration
from tests.live.flow import section
from tests.live.jars import jar_list, lists
from tests.live.sink_iceberg import IcebergSink


def test_every_seed_has_a_configuration_that_is_legal(tmp_path: Path) -> None:
    """Whatever the seed draws; and equal seeds draw the same."""
    pipelines = [
        Pipeline(f"s{seed}", f"live-s{seed}", section(seed, f"m{seed}_*.*", "canal-json"))
        for seed in range(40)
    ]
    path = tmp_path / "binlogd.toml"
    sinks = IcebergSink().sections(tmp_path)
    path.write_text(configuration(tmp_path, "127.0.0.1:1", pipelines, sinks))
    assert sorted(load(path).pipeline) == sorted(pipeline.name for pipeline in pipelines)
    assert section(3, "m3_*.*", "x") == section(3, "m3_*.*", "x")


def test_a_collector_gives_its_pipeline_topic_format_and_database(tmp_path: Path) -> None:
    """By the topic that the harness looks at."""
    more = {key: value for key, value in section(3, "p3_*.*", "x").items() if key != "format"}
    where = "jdbc:postgresql://127.0.0.1:1/p3", "postgres", ""
    one = Pipeline("s3", "live-s3", more, database=where, collector=(), publication="live")
    path = tmp_path / "binlogd.toml"
    sinks = IcebergSink().sections(tmp_path)
    path.write_text(configuration(tmp_path, "127.0.0.1:1", [one], sinks))
    found = load(path)
    assert found.pipeline["s3"].topics == ["live-s3"]
    assert found.collector["s3"].database == found.pipeline["s3"].database == "s3"
    assert found.database["s3"].publication == "live"


@pytest.mark.parametrize("name", lists())
def test_every_jar_of_a_list_has_its_hash(name: str) -> None:
    """A jar without one would be refused only when it has been fetched."""
    found = jar_list(name)
    named = {
        f"{one.get('conf')}/{one.get('name')}-{one.get('rev')}.jar"
        for one in ElementTree.parse(found.ivy).iter("dependency")
    }
    assert named == set(read_lock(found.lock))

"""Which sinks only one daemon may write, and which pipelines that concerns."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.file import load
from sparkwriter.sinks import single_writer

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
{catalog}
warehouse = "w"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
[[pipeline.shop.route]]
target = "copy.{{database}}.{{table}}"
[[pipeline.shop.route]]
target = "{sink}.shop.{{table}}"
"""


def reason(tmp_path: Path, catalog: str, sink: str = "lake") -> str | None:
    path = tmp_path / "config.toml"
    path.write_text(TEXT.format(catalog=catalog, sink=sink))
    return single_writer(load(path), "shop")


@pytest.mark.parametrize(
    "catalog",
    [
        'type = "hadoop"',
        'type = "Hadoop"',
        'catalog-impl = "org.apache.iceberg.hadoop.HadoopCatalog"',
    ],
)
def test_a_hadoop_catalog_is_for_one_writer(tmp_path: Path, catalog: str) -> None:
    """The line has the sink, the reason and the remedies."""
    said = reason(tmp_path, catalog)
    assert said is not None
    for part in ("sink lake ", "renames a file", "rest, jdbc or hive", "run one daemon"):
        assert part in said


@pytest.mark.parametrize(
    "catalog",
    [
        'type = "rest"\nuri = "http://127.0.0.1:1"',
        'type = "hive"',
        'type = "jdbc"\nuri = "jdbc:sqlite:c.db"',
        'catalog-impl = "com.example.Catalog"',
    ],
)
def test_other_catalogs_take_several_writers(tmp_path: Path, catalog: str) -> None:
    """Their commit is a compare-and-set."""
    assert reason(tmp_path, catalog) is None


def test_a_sink_that_the_pipeline_does_not_write_is_nothing_to_it(tmp_path: Path) -> None:
    """Only the targets of its routes count."""
    assert reason(tmp_path, 'type = "hadoop"', sink="copy") is None

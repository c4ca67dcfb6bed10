"""The pure parts of the contestants in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.compare.job import Job
from bench.compare.messages import messages
from bench.compare.rows import texts
from bench.compare.workloads import stream, workloads
from bench.peers.binlogd import configured
from bench.peers.dts_text import canal_text
from bench.peers.spark_peer import merge_sql
from bench.peers.streaming import end_of
from daemon.config.file import load


def job(folder: Path, mode: str = "upsert", **more: object) -> Job:
    """A job on the wide workload."""
    given = {
        "workload": "wide", "format": "canal-json", "mode": mode, "bootstrap": "127.0.0.1:9",
        "topic": "wide", "end": 10, "live": False, "tables": workloads(0.1)["wide"].specs,
        "catalog": {"type": "jdbc", "uri": "jdbc:sqlite:/x/catalog.db", "warehouse": "/x"},
        "prepared": True,
        "folder": str(folder), "jars": "/j", "peer_jars": "/p", "cores": 2, **more,
    }  # fmt: skip
    return Job(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_binlogds_configuration_is_valid(tmp_path: Path, mode: str) -> None:
    """And has the job's catalog, topic and mode."""
    path = tmp_path / "config.toml"
    path.write_text(configured(job(tmp_path, mode)))
    found = load(path)
    section = found.pipeline["bench"]
    assert (section.topics, section.mode) == (["wide"], mode)
    assert found.sink["lake"].settings()["catalog.uri"] == "jdbc:sqlite:/x/catalog.db"


def test_a_variant_is_a_key_of_the_pipeline(tmp_path: Path) -> None:
    """As the documentation writes it."""
    told = configured(job(tmp_path, variant={"write": "equality"}))
    assert told.partition("[pipeline.bench]")[2].endswith('write = "equality"\n')


def test_binlogd_is_told_of_topics_partitions_and_the_registry(tmp_path: Path) -> None:
    """Where they are other than one topic of one partition."""
    ends = {"a": (3, 4), "b": (3, 0)}
    path = tmp_path / "config.toml"
    given = job(tmp_path, format="debezium-avro", ends=ends, registry="http://127.0.0.1:9/v7")
    path.write_text(configured(given))
    found = load(path)
    section = found.pipeline["bench"]
    assert (section.topics, section.format, section.registry) == (["a", "b"], "debezium", "schemas")
    assert (section.partitioned_by, section.partitioner) == ("key", "murmur2")
    assert found.registry["schemas"].url == "http://127.0.0.1:9/v7"


def test_a_merge_names_every_column_and_the_key() -> None:
    """A delete that finds nothing inserts nothing."""
    sql = merge_sql("t", "s", workloads(0.1)["wide"].specs[0], " AND x")
    assert "ON t.`id` = s.`id` AND x WHEN MATCHED AND s.op = 'D' THEN DELETE" in sql
    assert "WHEN NOT MATCHED AND s.op <> 'D' THEN INSERT" in sql
    assert sql.count("`created`") == 4


def test_dts_messages_become_canals_json() -> None:
    """The rows of the stream: of a delete the row as it was."""
    workload = workloads(0.001)["wide-dts"]
    for group, value in zip(stream(workload), messages(workload), strict=True):
        text = canal_text(value)
        assert text is not None
        told = json.loads(text)
        versions = [row.before if row.after is None else row.after for row in group.rows]
        rows = zip(group.rows, versions, strict=True)
        assert told["data"] == [texts(row.key, version or 0) for row, version in rows]
        assert (told["table"], told["type"][0]) == (f"t{group.table}", group.op)


def test_a_batchs_end_is_in_the_checkpoint(tmp_path: Path) -> None:
    """The last line of what Spark noted of it: of all partitions."""
    (tmp_path / "offsets").mkdir()
    ends = {"wide": {"0": 300, "1": 150}, "more": {"0": 50}}
    lines = ["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps(ends)]
    (tmp_path / "offsets" / "3").write_text("\n".join(lines))
    assert end_of(tmp_path, 3) == 500

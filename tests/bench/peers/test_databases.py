"""What the contestants into databases are given, and the SQL of the expert's."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare.job import Job
from bench.compare.workloads import workloads
from bench.peers.binlogd import configured
from bench.peers.debezium_jdbc import connector
from bench.peers.streaming_jdbc import apply_sql, stage_sql
from daemon.config.file import load
from sparkwriter.sql.section import JdbcSection

POSTGRES = {
    "type": "postgresql", "url": "jdbc:postgresql://127.0.0.1:9/postgres", "user": "postgres",
}  # fmt: skip
MARIADB = {"type": "mariadb", "url": "jdbc:mariadb://127.0.0.1:9/", "user": "root"}


def job(folder: Path, catalog: dict[str, str]) -> Job:
    return Job(
        workload="databases", format="debezium-json", mode="upsert", bootstrap="127.0.0.1:9",
        topic="databases", end=10, live=False, tables=workloads(0.1)["databases-mariadb"].specs,
        catalog=catalog, prepared=True, folder=str(folder), jars="/j", peer_jars="/p", cores=2,
    )  # fmt: skip


@pytest.mark.parametrize("catalog", [POSTGRES, MARIADB], ids=["postgresql", "mariadb"])
def test_binlogds_configuration_is_valid(tmp_path: Path, catalog: dict[str, str]) -> None:
    """The database's sink with its defaults, and nothing of Spark."""
    path = tmp_path / "config.toml"
    path.write_text(configured(job(tmp_path, catalog)))
    sink = load(path).sink["lake"]
    assert isinstance(sink, JdbcSection)
    assert (sink.url, sink.user) == (catalog["url"], catalog["user"])
    assert "spark" not in path.read_text()


@pytest.mark.parametrize("catalog", [POSTGRES, MARIADB], ids=["postgresql", "mariadb"])
def test_the_connector_upserts_and_deletes_by_the_records_key(
    tmp_path: Path, catalog: dict[str, str]
) -> None:
    """Into the namespace that it is told, from the topic that it is told."""
    told = connector(job(tmp_path, catalog), "jdbc-1", "warm", "some")
    assert told["topics"] == "some"
    assert (told["insert.mode"], told["delete.enabled"]) == ("upsert", "true")
    assert told["primary.key.mode"] == "record_key"
    where = told["connection.url"].partition("?")[0], told["collection.name.format"]
    if catalog is POSTGRES:
        assert where == (catalog["url"], "warm.${source.table}")
    else:
        assert where == (catalog["url"] + "warm", "${source.table}")


@pytest.mark.parametrize("catalog", [POSTGRES, MARIADB], ids=["postgresql", "mariadb"])
def test_the_experts_batch_is_one_transaction(tmp_path: Path, catalog: dict[str, str]) -> None:
    """Of each table its upserts, then its deletes, all of the stage."""
    told = list(apply_sql(job(tmp_path, catalog), "bench", ["t0", "t1"]))
    assert (told[0], told[-1]) == ("BEGIN", "COMMIT")
    assert [one.partition(" ")[0] for one in told[1:-1]] == ["INSERT", "DELETE"] * 2
    assert all("bench.stage" in one for one in told[1:-1])
    assert "tbl = 't1'" in told[3]


def test_postgresqls_stage_is_not_logged(tmp_path: Path) -> None:
    """What is in it can be read again from the topic."""
    (postgres,) = stage_sql(job(tmp_path, POSTGRES), "bench")
    (mariadb,) = stage_sql(job(tmp_path, MARIADB), "bench")
    assert postgres.startswith("CREATE UNLOGGED TABLE bench.stage AS SELECT ")
    assert mariadb.startswith("CREATE TABLE bench.stage AS SELECT ")

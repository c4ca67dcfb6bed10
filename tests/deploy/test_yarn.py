"""The settings for YARN: a configuration that binlogd takes, with what a cluster needs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from settings.section import flatten
from tests.deploy.conftest import Check

TEXT = (Path(__file__).parents[2] / "deploy/yarn/config.toml").read_text()
REST = """
[kafka]
bootstrap.servers = "kafka.example:9092"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


def with_state(text: str) -> str:
    """Below a folder of the test's, where the fragment leaves the default."""
    return text.replace("[daemon]\n", '[daemon]\nstate_dir = "/var/lib/binlogd/state"\n')


def test_the_fragment_is_good(check: Check) -> None:
    """With a broker and a pipeline: status 0, and no warning of a port or of the staging area."""
    result = check(with_state(TEXT) + REST)
    assert result.exit_code == 0, result.stderr
    warned = [line for line in result.stderr.splitlines() if "temporary files" not in line]
    assert warned == []


def test_a_plain_folder_would_be_refused(check: Check) -> None:
    """Executors don't see it: the fragment's URI is not decoration."""
    lines = [line for line in with_state(TEXT).splitlines() if not line.startswith("staging_dir")]
    result = check("\n".join(lines) + REST)
    assert result.exit_code == 2
    assert "executors of yarn don't see it" in result.stderr


def test_executors_find_the_driver() -> None:
    """By a name and fixed ports, of which no two are the same."""
    conf = flatten(tomllib.loads(TEXT)["spark"]["conf"])
    assert conf["spark.driver.host"] != "localhost"
    assert conf["spark.driver.bindAddress"] == "0.0.0.0"
    assert conf["spark.driver.port"] != conf["spark.driver.blockManager.port"]
    assert conf["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in conf


def test_partitions_are_as_many_as_cores() -> None:
    """Of all executors together."""
    conf = flatten(tomllib.loads(TEXT)["spark"]["conf"])
    cores = int(conf["spark.executor.cores"]) * int(conf["spark.dynamicAllocation.maxExecutors"])
    assert int(conf["spark.sql.shuffle.partitions"]) == cores

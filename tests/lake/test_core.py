"""The contract of sinks on the two lakes that differ most from a folder, as ``make test-lake``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from demo.servers.jars import server_jars
from tests.lake.__main__ import command, environment

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(600)]

CHOSEN = (
    "test_rows_are_inserted or lost_its_reply or comes_late or steps_of_a_message"
    " or columns_come or partial_rows or moved_keys or reset_takes or columns_follow"
    " or truncate_and_drop"
)
"""One of each kind: write, fence, schema, statement by jobs, reset, DDL, rename, drop."""


@pytest.mark.parametrize("lake", ["rest-s3", "hive-hdfs"])
def test_the_contract_holds_on_a_lake_of_servers(lake: str, tmp_path: Path) -> None:
    """One of each kind."""
    lacking = {"rest-s3": "rest", "hive-hdfs": "hdfs"}
    server_jars(lacking[lake])
    passes(lake, "contract", f"iceberg and ({CHOSEN})", tmp_path)


def passes(lake: str, suite: str, chosen: str, folder: Path) -> None:
    """In a process of its own: Spark's session, whose lake it is, is one for a process."""
    run = subprocess.run(
        command([suite], ["-k", chosen, f"--basetemp={folder / 'it'}"]),
        cwd=CHECKOUT,
        env=environment(lake, "local"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert re.search(r"\d+ passed", run.stdout)

"""``make live`` itself, shortly, each way: so that what guards the rest does run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from demo.servers.apicurio import Apicurio
from tests.live.ways import READERS, SOURCES
from tests.needs import missing, needed

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
RUNS: Sequence[tuple[Sequence[str], Sequence[str], str, str, int]] = (
    (("mariadb", "postgres"), ("debezium",), "42-43", "mariadb,postgres", 1),
    (("mariadb",), ("maxwell", "canal"), "50-51", "postgres", 1),
    (("postgres",), ("debezium",), "44-45", "iceberg,postgres", 2),
)
"""Databases, what reads them, a seed for each way, sinks, partitions. Two ways have one start of
programs. The last has rows by key in the lake, and by table in a database."""
MISSING = 3


def test_each_database_and_each_reader_is_run() -> None:
    """One more is not forgotten."""
    assert {source for sources, *_ in RUNS for source in sources} == set(SOURCES)
    others = {reader for _, readers, *_ in RUNS for reader in readers}
    assert others | {"collector", "adopted"} == set(READERS)


@pytest.mark.parametrize(
    ("sources", "readers", "seeds", "sinks", "partitions"),
    RUNS,
    ids=["debezium", "others", "partitions"],
)
def test_a_short_seed_of_each_way_is_equal(
    sources: Sequence[str], readers: Sequence[str], seeds: str, sinks: str, partitions: int
) -> None:
    """With an operator, and a kill of nothing: a run's first round, to its one checkpoint."""
    last = run_seeds(
        2, "--sources", ",".join(sources), "--readers", ",".join(readers), "--sinks", sinks,
        "--seeds", seeds, "--beside", "2", "--operator", "--partitions", str(partitions),
    )  # fmt: skip
    assert re.match(r"live: OK, .* 0 silent; .* differences planted$", last), last


def test_a_short_seed_of_each_wire_with_a_registry_is_equal(tmp_path: Path) -> None:
    """MariaDB in Avro, PostgreSQL in Protobuf, MariaDB in JSON Schema: a topic of six partitions
    for each table."""
    with needed():
        Apicurio(tmp_path)
    last = run_seeds(
        3, "--wire", "avro,proto,jsonschema", "--partitions", "6", "--seeds", "42,45,46",
        "--beside", "3",
    )  # fmt: skip
    assert re.match(r"live: OK, .* 0 silent$", last), last


@pytest.mark.parametrize("reader", ["collector", "adopted"])
def test_a_short_seed_of_each_database_is_handed_over_by_the_collector(reader: str) -> None:
    """Twice, amid transactions: the tables are equal, and the topic has each row once."""
    last = run_seeds(
        2, "--readers", reader, "--faults", "handover", "--sinks", "sqlite", "--seeds", "42-43",
        "--beside", "2", calm=False,
    )  # fmt: skip
    assert re.match(r"live: OK, .* 0 silent, 2 hand-overs$", last), last


def run_seeds(count: int, *options: str, calm: bool = True) -> str:
    """Run so many seeds shortly, to their one checkpoint, all equal; gives the last line."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        missing("postgres", "it is not installed")
    if shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/local/bin") is None:
        missing("mariadb", "it is not installed")
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.live", *options, "--steps", "10", "--every", "10",
            *["--calm"] * calm,
        ],
        cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == MISSING:
        missing("readers", done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = re.findall(r"^seed (\d+) step 10: (\d+) of \d+ equal", done.stdout, re.MULTILINE)
    assert len(checked) == count, done.stdout
    assert all(int(equal) for _, equal in checked), done.stdout
    return done.stdout.splitlines()[-1]

"""What ``tables list --how`` prints for a database is run as it stands, by its own client."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.config.file import load
from sparkwriter.sections import make_sink
from tests.sparkwriter.databases import Server
from tests.sparkwriter.sql.test_queries import CONFIG

pytestmark = pytest.mark.integration


def test_the_databases_client_reads_it(
    writer, staging, orders, target, server: Server, tmp_path: Path
) -> None:
    """But for the password, which it asks a person for."""
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(url=server.url, user=server.user))
    config = load(file)
    writer.write(staging.batch(orders(("U", 1, "text 1", 1), ("U", 2, "text 2", 2)), 1))
    ours, theirs = make_sink("db", config.sink["db"], config).readers(target)
    assert ours.text == f"binlogd query 'SELECT * FROM {target}'"
    client = theirs.text.split()[0]
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")
    done = subprocess.run(
        ["bash", "-c", theirs.text.replace(" -p -e", " -e")],
        text=True, capture_output=True, timeout=60, check=False, env=os.environ | {"MYSQL_PWD": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "text 1" in done.stdout
    assert "text 2" in done.stdout

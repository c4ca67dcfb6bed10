"""Loads without Spark: a MariaDB is the source, and another schema of it has the targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pymysql

from tests.databases.base.servers import PASSWORD, Server
from tests.integration.rig import Rig
from tests.live.program import HOST


def write_config(
    rig: Rig, server: Server, *route: str, connections: int = 2, **load: object
) -> Path:
    """A configuration of one pipeline into ``copy.DB_copy.TABLE``.

    ``connections``: how many ranges are read at once; ``route``: more lines of its route; ``load``:
    more keys of ``[load]``.
    """
    url = f"jdbc:mariadb://{HOST}:{server.port}/"
    keys: dict[str, object] = {"margin_s": 2.0, "chunk_rows": 5000} | load
    lines = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "commit_interval_s = 0.3", "drain_timeout_s = 60",
        "[log]", 'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.2",
        "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
        "[database.shop]", f'url = "{url}"', 'user = "jobs"', f"password = {json.dumps(PASSWORD)}",
        f"connections = {connections}",
        "[load]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()),
        "[sink.copy]", 'kind = "jdbc"', f'url = "{url}"', 'user = "live"', 'password = "live"',
        "[pipeline.p]", f'topics = ["{rig.topic}"]', 'format = "canal-json"',
        f'group = "g-{rig.db}"', 'database = "shop"',
        "[pipeline.p.verify]", "margin_s = 1.0", "wait_s = 60.0",
        "[[pipeline.p.route]]", f'tables = ["{rig.db}.*"]',
        f'target = "copy.{rig.db}_copy.{{table}}"', *route,
    ]  # fmt: skip
    path = rig.folder / "copies.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def session(server: Server, *, autocommit: bool = True) -> Any:
    """A session of somebody with all rights."""
    return pymysql.connect(
        host=HOST, port=server.port, user="live", password="live", autocommit=autocommit
    )


def selected(server: Server, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    connection = session(server)
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]

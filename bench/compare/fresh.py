"""From sent to visible, for every contestant alike: from the history of its tables.

A row's version is visible from the moment on at which main first led to the snapshot that added
its data file. Rows tell when they were sent. What was overwritten before it was visible has no
figure; what only moves rows (compaction) adds none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession


def delays_s(spark: SparkSession, tables: Iterable[str]) -> list[float]:
    """Of each row that was ever visible in these tables, seconds from sent to visible."""
    return [delay for table in tables for delay in _delays_s(spark, table)]


def _delays_s(spark: SparkSession, table: str) -> list[float]:
    snapshots = spark.sql(
        f"SELECT snapshot_id, parent_id, operation FROM {table}.snapshots"
    ).collect()
    parents = {row.snapshot_id: row.parent_id for row in snapshots}
    moves = {row.snapshot_id for row in snapshots if row.operation == "replace"}
    log = spark.sql(
        f"SELECT snapshot_id, cast(unix_millis(made_current_at) AS BIGINT) AS at"
        f" FROM {table}.history ORDER BY made_current_at"
    ).collect()
    visible = visible_at([(row.at, row.snapshot_id) for row in log], parents)
    added = spark.sql(
        f"SELECT snapshot_id, data_file.file_path AS path FROM {table}.all_entries"
        " WHERE status = 1 AND data_file.content = 0"
    ).collect()
    at = {
        row.path: visible[row.snapshot_id]
        for row in added
        if row.snapshot_id in visible and row.snapshot_id not in moves
    }
    if not at:
        return []
    sent = spark.read.parquet(*at).selectExpr("sent", "_metadata.file_path AS path").collect()
    by_file = {_plain(path): moment for path, moment in at.items()}
    return [(by_file[_plain(row.path)] - row.sent) / 1000 for row in sent]


def _plain(path: str) -> str:
    """A path without its scheme, of which the two sides write different ones."""
    return "/" + path.split(":", 1)[-1].lstrip("/")


def visible_at(
    history: Sequence[tuple[int, int]], parents: Mapping[int, int | None]
) -> dict[int, int]:
    """When main first led to each snapshot.

    ``history``: when main was moved, and to which snapshot, in order. It may move over several.
    """
    seen: dict[int, int] = {}
    for at, snapshot in history:
        place: int | None = snapshot
        while place is not None and place not in seen:
            seen[place] = at
            place = parents.get(place)
    return seen

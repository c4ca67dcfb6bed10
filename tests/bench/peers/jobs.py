"""Jobs as the harness writes them, for contestants that are only asked what they would run."""

from __future__ import annotations

from pathlib import Path

from bench.compare.job import Column, Job, TableSpec

COLUMNS = (
    Column("id", "bigint(20)", "BIGINT"),
    Column("name", "varchar(64)", "STRING"),
    Column("amount", "decimal(10,2)", "DECIMAL(10,2)"),
    Column("created", "datetime", "TIMESTAMP_NTZ"),
)


def job(folder: Path, *tables: TableSpec, end: int = 1_000_000) -> Job:
    """A job over these tables, or over one, t0."""
    return Job(
        workload="wide",
        format="canal-json",
        mode="upsert",
        bootstrap="127.0.0.1:1",
        topic="wide",
        end=end,
        live=False,
        tables=tables or (TableSpec("t0", COLUMNS, ("id",)),),
        catalog={
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
            "jdbc.schema-version": "V1",
            "warehouse": f"{folder}/warehouse",
        },
        prepared=False,
        folder=str(folder / "scratch"),
        jars=str(folder),
        peer_jars=str(folder),
        cores=2,
    )

"""What ``tables list --how`` prints for a lake is run as it stands, by each tool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actors.runtime.jars import lake_jars
from actors.runtime.java import find_java
from changes.model.model import TargetName
from sparkwriter.iceberg.queries import _duckdb, load_extensions
from sparkwriter.iceberg.readers import lake_readers

TARGET = TargetName("lake", "shop", "Orders")


def texts(catalog: dict[str, str], target: TargetName) -> dict[str, str]:
    return {reader.tool.split()[0]: reader.text for reader in lake_readers("lake", catalog, target)}


@pytest.mark.long
@pytest.mark.integration
def test_each_tool_reads_it(writer, staging, orders, lake, lake_conf, target, tmp_path) -> None:
    """Extensions and packages, which a person's machine fetches, are the ones that are here."""
    if lake.folder is None:
        pytest.skip("the lake is not on this machine")
    writer.write(staging.batch(orders(("U", 1, "text 1", 1), ("U", 2, "text 2", 2)), 1))
    found = texts(lake_conf, target)
    assert list(found) == ["binlogd", "DuckDB", "PyIceberg", "Spark"]

    duckdb = _duckdb()
    with duckdb.connect() as connection:
        load_extensions(duckdb, connection)
        install, select = found["DuckDB"].splitlines()
        assert install == "INSTALL iceberg; LOAD iceberg;"
        rows = connection.execute(select).fetchall()
    assert sorted(rows) == [(1, "text 1", 1), (2, "text 2", 2)]

    assert "text 2" in ran([sys.executable, "-c", found["PyIceberg"]], tmp_path)

    first, *rest = found["Spark"].splitlines()
    _, _, packages, _ = first.split(" ")
    jars = {path.name for path in lake_jars()}
    for group, artifact, version in (each.split(":") for each in packages.split(",")):
        assert f"{artifact}-{version}.jar" in jars, group
    spark = str(Path(sys.executable).parent / "spark-sql")
    local = f"{spark} --jars {','.join(map(str, lake_jars()))} \\"
    assert "text 2" in ran(["bash", "-c", "\n".join([local, *rest])], tmp_path)


def ran(words: list[str], folder: Path) -> str:
    """What it prints. Spark's shell lays a metastore where it is started."""
    own = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java().home)}
    done = subprocess.run(
        words, cwd=folder, env=os.environ | own, text=True, capture_output=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rest_catalog_is_opened_by_all_of_them() -> None:
    """Names are quoted where they need to be; a secret stays the name that stands for it."""
    catalog = {"type": "rest", "uri": "http://c:8181", "warehouse": "w's", "token": "${file:t}"}
    found = texts(catalog, TARGET)
    assert list(found) == ["DuckDB", "PyIceberg", "Spark", "Trino"]
    assert "ATTACH 'w''s' AS lake (TYPE iceberg, ENDPOINT 'http://c:8181'" in found["DuckDB"]
    assert 'SELECT * FROM lake.shop."Orders"' in found["DuckDB"]
    assert "SELECT * FROM lake.shop.`Orders`" in found["Spark"]
    assert "--conf 'spark.sql.catalog.lake.token=${file:t}'" in found["Spark"]
    assert "iceberg.rest-catalog.uri=http://c:8181" in found["Trino"]


def test_who_cannot_open_a_catalog_is_left_out() -> None:
    assert list(texts({"type": "glue", "warehouse": "s3://b"}, TARGET)) == ["Spark"]

"""What a package has of pyspark's jars is enough for a lake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from demo.servers.s3_lake import S3Lake
from tests.needs import needed

CHECKOUT = Path(__file__).parents[3]
LEAVE_OUT = CHECKOUT / "packaging" / "leave_out_jars.py"


def leave_out(jars: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, LEAVE_OUT, jars], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """pyspark as the package has it: what it leaves out is gone, the rest are links."""
    home = tmp_path / "spark"
    shutil.copytree(Path(pyspark.__file__).parent, home, copy_function=os.symlink)
    return home


def test_the_list_is_of_todays_pyspark(spark_home: Path) -> None:
    """Every line finds something; two hundred megabytes are gone; a second time is refused."""
    gone = leave_out(spark_home / "jars")
    assert gone.returncode == 0, gone.stderr
    assert int(gone.stdout.split()[-2]) > 200
    left = {path.name.partition("_")[0] for path in (spark_home / "jars").iterdir()}
    assert {"spark-sql", "spark-catalyst", "spark-kubernetes", "spark-yarn"} <= left
    again = leave_out(spark_home / "jars")
    assert again.returncode == 1
    assert "has nothing like rocksdbjni-*.jar" in again.stderr


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(700)
@pytest.mark.parametrize("lake", ["folder", "s3"])
def test_a_lake_is_written_and_read_with_what_is_left(
    lake: str, spark_home: Path, tmp_path: Path
) -> None:
    """Inserts, updates, deletes, statements, compaction, and every row read back by Spark."""
    assert leave_out(spark_home / "jars").returncode == 0
    with needed():
        if lake == "s3":
            S3Lake(tmp_path / "asked")
        ran = subprocess.run(
            [sys.executable, "-m", "demo", "--changes", "20000", "--lake", lake,
             "--var", tmp_path / "demo"],
            cwd=CHECKOUT, env=os.environ | {"SPARK_HOME": str(spark_home)}, capture_output=True,
            text=True, timeout=600,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "demo: OK, 20000 changes, 15 tables equal" in ran.stdout

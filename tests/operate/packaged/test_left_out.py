"""What a package has of pyspark, pyarrow and the jars is enough for a lake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from actors.runtime.jars import extras_folder, jars_folder
from demo.load.mariadb import mariadb
from demo.servers.s3_lake import S3Lake
from tests.needs import needed

CHECKOUT = Path(__file__).parents[3]
LEAVE_OUT = CHECKOUT / "packaging" / "leave_out.py"
SITE = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
LIBRARIES = (".so", ".a", ".dll", ".dylib", ".jnilib")
WHERE = "import pyarrow.parquet, pyspark.sql; print(pyarrow.__file__, pyspark.__file__)"
EXTRAS = ("s3", "mariadb")
LAKES = {"folder": (), "s3": ("--lake", "s3")}


def leave_out(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, LEAVE_OUT, root], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An environment as the package has it, before anything is left out: all files are links."""
    installed = Path(sysconfig.get_path("purelib"))
    places = {
        SITE / "pyspark": installed / "pyspark",
        SITE / "pyarrow": installed / "pyarrow",
        Path("share/binlogd/jars"): jars_folder(),
        **{Path("share/binlogd/jars-extras", name): extras_folder() / name for name in EXTRAS},
    }
    made = tmp_path / "env"
    for place, source in places.items():
        shutil.copytree(source.resolve(), made / place, copy_function=os.symlink)
    return made


def test_the_list_is_of_todays_packages(root: Path) -> None:
    """Every line finds something; a second time is refused."""
    gone = leave_out(root)
    assert gone.returncode == 0, gone.stderr
    assert int(gone.stdout.split()[-2]) > 300
    jars = root / SITE / "pyspark" / "jars"
    left = {path.name.partition("_")[0] for path in jars.iterdir()}
    assert {"spark-sql", "spark-catalyst", "spark-kubernetes", "spark-yarn"} <= left
    again = leave_out(root)
    assert again.returncode == 1
    assert "has nothing like" in again.stderr
    assert "pyspark/jars/rocksdbjni-*.jar" in again.stderr


def test_jars_keep_the_libraries_of_linux_and_all_else(root: Path) -> None:
    """On both kinds of processor; other files are the same, byte by byte."""
    whole = {path.relative_to(root): path.resolve() for path in root.rglob("*.jar")}
    assert leave_out(root).returncode == 0
    thinner = [path for path in root.rglob("*.jar") if not path.is_symlink()]
    assert sorted(re.split(r"-\d", path.name)[0] for path in thinner) == [
        "iceberg-aws-bundle", "lz4-java", "snappy-java", "sqlite-jdbc", "zstd-jni",
    ]  # fmt: skip
    for path in thinner:
        before = zipfile.ZipFile(whole[path.relative_to(root)])
        after = zipfile.ZipFile(path)
        libraries = [name for name in after.namelist() if name.endswith(LIBRARIES)]
        assert len(libraries) == 2, libraries
        others = [name for name in before.namelist() if not name.endswith(LIBRARIES)]
        assert others == [name for name in after.namelist() if name not in libraries]
        assert all(before.read(name) == after.read(name) for name in after.namelist())


@pytest.fixture
def environ(root: Path) -> dict[str, str]:
    """In which the demo runs with what is left, and with its broker's jars."""
    assert leave_out(root).returncode == 0
    jars = root / "share/binlogd/jars"
    (jars / "kafka").symlink_to((jars_folder() / "kafka").resolve())
    site = root / SITE
    named = {"PYTHONPATH": str(site), "SPARK_HOME": str(site / "pyspark")}
    made = os.environ | named | {"BINLOGD_JARS": str(jars)}
    found = subprocess.run(
        [sys.executable, "-c", WHERE], env=made, capture_output=True, text=True, timeout=60
    )
    assert found.stdout.count(str(site)) == 2, found.stdout + found.stderr
    return made


def demo(environ: dict[str, str], *words: str | Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *words], cwd=CHECKOUT, env=environ, capture_output=True, text=True,
        timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(700)
@pytest.mark.parametrize("lake", LAKES)
def test_a_lake_is_written_and_read_with_what_is_left(
    lake: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """Inserts, updates, deletes, statements, compaction, and every row read back by Spark."""
    with needed():
        if lake == "s3":
            S3Lake(tmp_path / "asked")
    said = demo(environ, "demo", "--changes", "20000", *LAKES[lake], "--var", tmp_path / "demo")
    assert "demo: OK, 20000 changes, 15 tables equal" in said


@pytest.mark.soak
@pytest.mark.integration
@pytest.mark.timeout(1000)
def test_a_lake_is_loaded_verified_and_repaired_with_what_is_left(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """From a database, beside changes, through a kill."""
    with needed(), mariadb(tmp_path / "asked"):
        pass
    words = ("--rows", "100000", "--per-second", "200", "--var", tmp_path / "demo")
    assert "8 tables verified equal" in demo(environ, "demo.load", *words)

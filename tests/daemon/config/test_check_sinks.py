"""``binlogd check-config`` about sinks, their catalogs, and a Spark on other machines."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from actors.runtime import jars
from changes.model.errors import SinkUnavailable
from tests.daemon.operations.checks.test_check import TEXT, check, lines


def test_a_cluster_that_takes_anybody_is_a_warning(tmp_path: Path) -> None:
    """What is this machine's alone has a secret of its own; a cluster needs one that is set."""
    result = check(tmp_path, TEXT + CLUSTER + '[daemon]\nstaging_dir = "file:///mnt/shared"\n')
    assert result.exit_code == 0
    driver, ports, *_ = lines(result, tmp_path)
    assert driver.startswith("warning: spark.conf.spark.driver.host: is localhost")
    assert ports.startswith("warning: spark.conf.spark.authenticate: anyone who reaches the ports")


CLUSTER = '[spark]\nmaster = "spark://far:7077"\n'


def test_executors_that_cannot_read_what_is_staged(tmp_path: Path) -> None:
    """A folder of this machine alone is refused with a cluster, with what to write instead."""
    result = check(tmp_path, TEXT + CLUSTER)
    assert result.exit_code == 2
    line = lines(result, tmp_path)[-1]
    assert line.startswith(
        f"daemon.staging_dir: {tmp_path}/var/staging is a folder of this machine"
    )
    assert "executors of spark://far:7077 don't see it" in line
    assert "s3://BUCKET/staging" in line


@pytest.mark.parametrize("place", ["ftp://x/y", "s3://", "file:///"])
def test_a_staging_area_that_is_no_place(tmp_path: Path, place: str) -> None:
    """Neither a folder nor a URI that binlogd knows."""
    result = check(tmp_path, TEXT + f'[daemon]\nstaging_dir = "{place}"\n')
    (line,) = lines(result, tmp_path)
    assert result.exit_code == 2
    assert line.startswith(f"daemon.staging_dir: '{place}' is neither a folder nor a URI")


def test_a_catalog_for_one_daemon_is_a_warning(tmp_path: Path) -> None:
    """Nothing in a configuration says how many members its group will have."""
    text = TEXT.replace('type = "jdbc"', 'type = "hadoop"')
    result = check(tmp_path, text)
    assert result.exit_code == 0
    (line,) = [each for each in lines(result, tmp_path) if each.startswith("warning")]
    assert line.startswith("warning: sink.lake.catalog.type: a hadoop catalog is for one daemon")
    assert "overwrite each other's commits" in line


def test_connect_opens_the_embedded_catalog_without_spark(tmp_path: Path) -> None:
    """A file that is no database is told at once."""
    from daemon.config.config import Config
    from sparkwriter.iceberg.adapter import IcebergSink
    from sparkwriter.iceberg.section import IcebergSection

    def lake(**catalog: str) -> IcebergSink:
        section = IcebergSection(kind="iceberg", catalog=catalog)
        return IcebergSink("lake", section, Config.model_construct(kafka={}, sink={}, pipeline={}))

    embedded = lake(type="jdbc", uri=f"jdbc:sqlite:{tmp_path}/c.db")
    assert embedded.probe()
    assert not (tmp_path / "c.db").exists()
    sqlite3.connect(tmp_path / "c.db").execute("CREATE TABLE t (a)").connection.close()
    assert embedded.probe()
    (tmp_path / "c.db").write_text("no database, and long enough to be looked at" * 50)
    with pytest.raises(SinkUnavailable, match=r"the catalog: can't open .*: file is not a datab"):
        embedded.probe()
    assert not lake(type="rest", uri="http://h").probe()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"jdbc"', '"jbdc"', "type: 'jbdc' is none of bigquery, glue, hadoop, hive, jdbc, "
         "nessie, rest; others are named by catalog-impl"),
        ('warehouse = "w"', "", "warehouse: is missing; a catalog of type jdbc needs it"),
        ('uri = "jdbc:sqlite:c.db"', "", "uri: is missing; a catalog of type jdbc needs it"),
    ],
)  # fmt: skip
def test_a_catalog_that_iceberg_would_refuse_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Before Spark is started to hear it."""
    result = check(tmp_path, TEXT.replace(old, new))
    assert (result.exit_code, lines(result, tmp_path)) == (2, [f"sink.lake.catalog.{said}"])


def test_a_catalog_of_ones_own_class_is_not_judged(tmp_path: Path) -> None:
    """It knows itself what it needs."""
    own = TEXT.replace('type = "jdbc"', 'catalog-impl = "com.example.Own"').replace(
        'warehouse = "w"', ""
    )
    assert check(tmp_path, own).exit_code == 0


def test_jars_that_a_catalog_needs_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each sink that lacks some, with the command that brings them."""
    monkeypatch.setattr(jars, "extras_folder", lambda: tmp_path / "extras")
    text = TEXT.replace('"jdbc:sqlite:c.db"', '"jdbc:postgresql://db/lake"')
    text = text.replace('warehouse = "w"', 'warehouse = "s3://bucket/w"')
    result = check(tmp_path, text)
    assert (result.exit_code, lines(result, tmp_path)) == (
        2,
        ['sink lake: needs the jars of s3 postgresql: run `make setup EXTRAS="s3 postgresql"`'],
    )
    present = tmp_path / "extras" / "s3" / "jars" / "a.jar"
    present.parent.mkdir(parents=True)
    present.touch()
    assert lines(check(tmp_path, text), tmp_path) == [
        "sink lake: needs the jars of postgresql: run `make setup EXTRAS=postgresql`"
    ]

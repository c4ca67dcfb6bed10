"""Jars that only some catalogs need: told by the properties, fetched by name, missing in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.runtime.jars import EXTRAS, JarsError, extra_jars, extra_list, read_lock
from sparkwriter.session.spark_conf import driver_extra, needed_extras

S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"
POSTGRESQL = "jdbc:postgresql://db/lake"


@pytest.mark.parametrize(
    ("properties", "needed"),
    [
        ({"type": "jdbc", "uri": "jdbc:sqlite:c.db", "warehouse": "/srv/lake"}, ()),
        ({"type": "hive", "warehouse": "hdfs://name/lake"}, ()),
        ({"type": "rest", "uri": "http://here", "warehouse": "main"}, ()),
        ({"type": "rest", "uri": "http://here", "io-impl": S3_IO}, ("s3",)),
        ({"type": "rest", "uri": "http://here", "s3.endpoint": "http://there"}, ("s3",)),
        ({"type": "jdbc", "uri": "jdbc:sqlite:c.db", "warehouse": "s3://bucket/w"}, ("s3",)),
        ({"type": "hive", "warehouse": "s3a://bucket/w"}, ("s3",)),
        ({"type": "glue"}, ("s3",)),
        ({"type": "jdbc", "uri": POSTGRESQL, "warehouse": "/srv/lake"}, ("postgresql",)),
        (
            {"type": "jdbc", "uri": POSTGRESQL, "warehouse": "s3://bucket/w"},
            ("s3", "postgresql"),
        ),
    ],
)
def test_the_properties_tell_what_is_needed(
    properties: dict[str, str], needed: tuple[str, ...]
) -> None:
    """Storage by its file system or the warehouse's scheme, a driver by the catalog's address."""
    assert needed_extras(properties, {}) == needed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars", "/opt/iceberg-aws-bundle-1.11.0.jar,/opt/postgresql-42.7.1.jar"),
        (
            "spark.jars.packages",
            "org.apache.iceberg:iceberg-aws-bundle:1.12.0,org.postgresql:postgresql:42.7.1",
        ),
    ],
)
def test_what_a_person_brings_is_not_asked_for(key: str, value: str) -> None:
    """Whoever names a jar to Spark himself has chosen its version."""
    properties = {"type": "jdbc", "uri": POSTGRESQL, "warehouse": "s3://bucket/w"}
    assert needed_extras(properties, {key: value}) == ()


@pytest.mark.parametrize(
    ("url", "conf", "needed"),
    [
        ("jdbc:mysql://db/", {}, ("mariadb",)),
        ("jdbc:mariadb://db/", {}, ("mariadb",)),
        ("mysql://db/", {}, ("mariadb",)),
        ("postgresql://db/shop", {}, ("postgresql",)),
        ("postgres://db/shop", {}, ("postgresql",)),
        (POSTGRESQL, {}, ("postgresql",)),
        ("jdbc:mysql://db/", {"spark.jars": "/opt/mariadb-java-client-3.4.1.jar"}, ()),
    ],
)
def test_a_database_needs_its_driver(
    url: str, conf: dict[str, str], needed: tuple[str, ...]
) -> None:
    """MariaDB's for MySQL, too; unless a person brings one."""
    assert driver_extra(url, conf) == needed


def test_missing_jars_say_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line; they lie beside everybody's jars."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path / "jars"))
    with pytest.raises(JarsError) as told:
        extra_jars(["s3"])
    assert str(told.value) == "needs the jars of s3: run `make setup EXTRAS=s3`"
    jar = tmp_path / "jars-extras" / "s3" / "jars" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    assert extra_jars(["s3"]) == [jar]


def test_an_unknown_extra_names_those_there_are() -> None:
    """Whoever mistypes a name sees the right one."""
    with pytest.raises(JarsError, match="gcs is none of collector, mariadb, postgresql, s3"):
        extra_list("gcs")


def test_each_extra_is_locked() -> None:
    """A list without a lock could not be fetched."""
    for ivy in EXTRAS.glob("*.xml"):
        assert read_lock(extra_list(ivy.stem).lock)

"""``[database.NAME]`` and the pipelines' keys that name one: what is refused, what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.operations.checks.check import warnings

TEXT = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "copy.{database}.{table}"
"""
SHOP = """
[database.shop]
url = "jdbc:mysql://db.example.com/"
user = "reader"
password = "${file:secret}"
"""


def configured(tmp_path: Path, text: str) -> Config:
    (tmp_path / "secret").write_text("hidden-word\n")
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load(file, {})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("jdbc:oracle:thin:@db", "KIND being mysql, mariadb or postgresql"),
        ("jdbc:mysql://u:p@db/", "user and password are keys of their own"),
        ("jdbc:mysql://db/?allowMultiQueries=true", "the parameter allowMultiQueries is none of"),
        ("mysql://a,b/", "names several servers: one is read"),
        ("jdbc:postgresql://db", "names no database: postgresql://HOST/DATABASE"),
        ("jdbc:mysql://db:99999/", "99999 is no port"),
    ],
)
def test_other_addresses_are_refused(tmp_path: Path, url: str, said: str) -> None:
    """With the key, and what is required."""
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, TEXT + SHOP.replace("jdbc:mysql://db.example.com/", url))
    (line,) = refused.value.problems
    assert "database.shop.url: " in line
    assert said in line


def test_a_pipeline_names_one_database_or_one_for_each_schema(tmp_path: Path) -> None:
    """The first pattern that matches a schema decides."""
    databases = 'databases = { "shop_0*" = "shop", "shop_*" = "b" }\n'
    b = SHOP.replace("database.shop", "database.b")
    config = configured(tmp_path, TEXT + databases + SHOP + b)
    found = [config.database_of("shop", schema) for schema in ("shop_01", "shop_11", "other")]
    assert found == ["shop", "b", None]
    config = configured(tmp_path, TEXT + 'database = "shop"\n' + SHOP)
    assert config.database_of("shop", "whatever") == "shop"
    assert configured(tmp_path, TEXT + SHOP).database_of("shop", "whatever") is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('database = "far"\n', "pipeline.shop.database: there is no database 'far'; have: shop"),
        (
            'databases = { "a*" = "far" }\n',
            "pipeline.shop.databases.a*: there is no database 'far'; have: shop",
        ),
        (
            'database = "shop"\ndatabases = { "a*" = "shop" }\n',
            "pipeline.shop: database or databases is required, not both",
        ),
    ],
)
def test_what_names_no_database_is_refused(tmp_path: Path, more: str, said: str) -> None:
    """Before anything starts."""
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, TEXT + more + SHOP)
    assert [line.partition("config.toml: ")[2] for line in refused.value.problems] == [said]


REPLICA = """[database.copy]
url = "jdbc:mysql://copy/"
user = "u"
role = "replica"
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "database.copy.role: a replica is read once it is shown to have what its primary has"),
        (
            'primary = "far"\n',
            "database.copy.primary: there is no database 'far' whose role is pri",
        ),
        ('primary = "copy"\n', "database.copy.primary: there is no database 'copy' whose role is"),
        ('primary = "pg"\n', "database.copy.primary: pg is another kind of database"),
    ],
)
def test_a_replica_names_its_primary(tmp_path: Path, more: str, said: str) -> None:
    """Else nobody knows what it lacks."""
    pg = SHOP.replace("database.shop", "database.pg")
    pg = pg.replace("jdbc:mysql://db.example.com/", "jdbc:postgresql://db/x")
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, TEXT + SHOP + pg + REPLICA + more)
    (line,) = refused.value.problems
    assert line.partition("config.toml: ")[2].startswith(said)
    assert configured(tmp_path, TEXT + SHOP + REPLICA + 'primary = "shop"\n').database["copy"]


def test_unknown_keys_are_refused_with_those_there_are(tmp_path: Path) -> None:
    """As everywhere in the file."""
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, TEXT + SHOP + "fetch = 1\n")
    (line,) = refused.value.problems
    assert "database.shop.fetch: unknown key (line " in line
    assert "; allowed: connections, password, primary, publication, " in line


def test_the_password_is_a_secret(tmp_path: Path) -> None:
    """Of a file or in the text, it is in nothing that is shown."""
    config = configured(tmp_path, TEXT + SHOP)
    assert config.database["shop"].password == "hidden-word"
    assert config.redactor.text("no hidden-word here") == "no *** here"
    plain = SHOP.replace("${file:secret}", "plain-word")
    assert "plain-word" in configured(tmp_path, TEXT + plain).secrets


def test_a_relative_certificate_is_the_files(tmp_path: Path) -> None:
    """As every path in the file."""
    config = configured(tmp_path, TEXT + SHOP + 'tls = "verified"\ntls_ca = "ca.pem"\n')
    assert config.database["shop"].tls_ca == str(tmp_path / "ca.pem")


def test_a_file_of_before_without_tls_is_warned(tmp_path: Path) -> None:
    """With the section, and what it may write; one of another machine alone."""
    file = tmp_path / "config.toml"
    told = list(warnings(configured(tmp_path, TEXT + SHOP), file))
    (line,) = (line for line in told if line.startswith("database.shop.url"))
    assert 'Write tls = "verified"' in line
    for written in ("mysql://db.example.com/", "jdbc:mysql://127.0.0.1/"):
        text = TEXT + SHOP.replace("jdbc:mysql://db.example.com/", written)
        assert "database.shop" not in str(list(warnings(configured(tmp_path, text), file)))

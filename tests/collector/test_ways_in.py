"""What docs/ways-in.md gives to copy is what the collector and ``make live`` set, and is taken."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

import pytest

from collector.connector.config import Flavor, Surroundings, connector_config
from collector.connector.section import CollectorSection
from daemon.config.config import Config
from databases.base.url import Login
from tests.live.connect import DEBEZIUM
from tests.live.maxwell import Maxwell
from tests.live.source_mariadb import MariaDbSource

PAGE = Path(__file__).parents[2] / "docs" / "ways-in.md"
TEXT = PAGE.read_text()
FLAVORS = {"MySQL": "mysql", "MariaDB": "mariadb", "PostgreSQL": "postgresql"}
BEFORE = """
[kafka]
bootstrap.servers = "127.0.0.1:9"
[sink.lake]
kind = "sqlite"
path = "x.db"
"""


def block(heading: str, place: int = 0) -> dict[str, str]:
    """The options of a part of the page."""
    part = re.split(r"\n#{2,3} ", TEXT.split(f"# {heading}\n", 1)[1])[0]
    lines = re.findall(r"```properties\n(.*?)```", part, re.DOTALL)[place].splitlines()
    return dict(line.split("=", 1) for line in lines)


def of_collector(flavor: str) -> Mapping[str, str]:
    """What the collector sets for such a database."""
    kind = "postgresql" if flavor == "postgresql" else "mysql"
    login = Login(kind, "db", 1, "shop", "reader", "x")  # type: ignore[arg-type]
    assert flavor in get_args(Flavor)
    clients = {"bootstrap.servers": "k:9092"}
    around = Surroundings("shop", cast(Flavor, flavor), login, ("shop.*",), clients, {})
    return connector_config(CollectorSection(database="shop"), around)


@pytest.mark.parametrize("name", FLAVORS)
def test_debeziums_options_are_the_collectors(name: str) -> None:
    """Each of them, with its value."""
    given = block("Debezium") | block(name)
    own = of_collector(FLAVORS[name])
    assert len(given) > 15
    assert given == {option: own.get(option) for option in given}


def test_one_topic_is_made_as_in_the_live_run() -> None:
    """By the same transformation."""
    given = block("Debezium", 1)
    assert given.pop("transforms.one.replacement") == "shop"
    assert given == {option: DEBEZIUM[option] for option in given}


def test_maxwells_options_are_those_of_the_live_run() -> None:
    """With one topic for rows and statements."""
    reader = object.__new__(Maxwell)
    reader.folder, reader.bootstrap, reader._path = Path("x"), "k:9092", "jar"
    source = object.__new__(MariaDbSource)
    source.port = 1
    set_ = reader.command("live", "shop", 3, source)
    assert {f"--{name}={value}" for name, value in block("Maxwell").items()} <= set(set_)


@pytest.mark.parametrize("toml", re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
def test_each_pipeline_is_taken(toml: str) -> None:
    """As it stands, beside a broker and a sink."""
    config = Config.model_validate(tomllib.loads(BEFORE + toml))
    assert list(config.pipeline) == ["shop"]

"""Collectors in the whole configuration: what they give to pipelines, and what does not fit."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from daemon.config.collectors import tables_of
from daemon.config.config import Config

FILE = """
[kafka]
bootstrap.servers = "k:9092"
[sink.lake]
kind = "sqlite"
path = "x.db"
[database.shop]
url = "mariadb://db.example/"
user = "reader"
[collector.shop]
database = "shop"
[pipeline.shop]
collector = "shop"
include = ["shop.*"]
target = "lake.{database}.{table}"
"""


def config(changed: dict[str, Any] | None = None) -> Config:
    document = tomllib.loads(FILE)
    for path, value in (changed or {}).items():
        *parents, last = path.split("/")
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return Config.model_validate(document)


def test_a_pipeline_has_topics_format_and_database_of_its_collector() -> None:
    """Nothing is written twice."""
    found = config().pipeline["shop"]
    assert (found.topics, found.format, found.database) == (["shop"], "debezium-json", "shop")


def test_the_same_written_twice_is_no_contradiction() -> None:
    """It says the same."""
    assert config({"pipeline/shop/topics": ["shop"]}).pipeline["shop"].topics == ["shop"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pipeline/shop/topics": ["other"]}, r"pipeline.shop.topics: collector 'shop' gives"),
        ({"pipeline/shop/format": "canal-json"}, "pipeline.shop.format: collector"),
        ({"pipeline/shop/database": "crm"}, "pipeline.shop.database: collector"),
        ({"pipeline/shop/registry": "main"}, "does not go with collector"),
        ({"pipeline/shop/collector": "none"}, "there is no collector 'none'; have: shop"),
        ({"collector/shop/database": "crm"}, "collector.shop.database: there is no database"),
        ({"collector/crm": {"database": "shop"}}, "collector.crm: no pipeline reads it"),
        ({"collector/crm": {"database": "shop", "topic": "shop"}}, "is that of collector.shop"),
        ({"database/shop/url": "mariadb://%2Frun%2Fs/"}, "TCP alone"),
        ({"pipeline/shop/kafka": {"isolation.level": "read_uncommitted"}}, "read_committed"),
        ({"collector/shop/config": {"tasks.max": 2}}, "collector.shop: config.tasks.max"),
    ],
)
def test_what_does_not_fit_is_told_by_name(changed: dict[str, Any], said: str) -> None:
    """With the key."""
    with pytest.raises(ValidationError) as refused:
        config(changed)
    said_ = "\n".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in refused.value.errors()
    ).replace("Value error, ", "")
    assert re.search(said, said_), said_


def test_a_collector_reads_what_its_pipelines_take() -> None:
    """Unless it says itself what."""
    found = config()
    assert tables_of("shop", found.collector["shop"], found.pipeline) == ("shop.*",)
    own = config({"collector/shop/tables": ["shop.a"]})
    assert tables_of("shop", own.collector["shop"], own.pipeline) == ("shop.a",)
    beside = config({"collector/crm": {"database": "shop"}, "pipeline/crm": {
        "topics": ["crm"], "format": "debezium-json", "include": ["crm.*"],
        "target": "lake.c.{table}",
    }})  # fmt: skip
    assert tables_of("crm", beside.collector["crm"], beside.pipeline) == ("crm.*",)

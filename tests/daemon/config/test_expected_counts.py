"""``[pipeline.NAME.expected_counts]``: what is refused, and what is read of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.file import ConfigError, load
from daemon.config.pipeline_config import pipelines_of
from daemon.config.shown import shown
from daemon.operations.checks.check_gates import own_topics_missing

BASE = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.lake]
kind = "sqlite"
path = "lake.db"
[database.shop]
url = "postgresql://127.0.0.1:1/shop"
user = "reader"
[pipeline.p]
topics = ["t", "^counts.*"]
format = "canal-json"
target = "lake.{database}.{table}"
"""
QUERY = "SELECT t, m, o, n FROM a WHERE m >= {from} AND m < {to}"


def said(text: str, *more: str) -> str:
    return BASE + "\n".join((*more, f"expected_counts = {{ {text} }}\n"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (said(""), "expected_counts: topic or query is required, not both"),
        (said(f'topic = "c", query = "{QUERY}"'), "topic or query is required, not both"),
        (said(f'query = "{QUERY}", kafka = {{ "a.b" = 1 }}'), "kafka: there is no topic"),
        (said('topic = "c", kafka = { "group.id" = "x" }'), "group.id is set by binlogd itself"),
        (said('query = "SELECT {from}"', 'database = "shop"'), "query: {from} and {to} are"),
        (said(f'query = "{QUERY}"'), 'p.expected_counts.query: set database = "NAME"'),
        (said('topic = "t"'), "p.expected_counts.topic: 't' is one of the topics that are read"),
        (said('topic = "c", tabel = "x"'), "expected_counts.tabel"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert why in str(refused.value)


def test_a_topic_of_counts_is_not_read_by_a_pattern(tmp_path: Path) -> None:
    """One of another cluster may be called as one that is read."""
    path = tmp_path / "config.toml"
    path.write_text(said('topic = "counts-of-shop"'))
    own = load(path).topics_of("p").own
    assert "counts-of-shop" in own
    path.write_text(said('topic = "t", kafka = { "bootstrap.servers" = "b:1" }'))
    assert "t" not in load(path).topics_of("p").own


def test_its_client_is_the_pipelines_but_for_its_own_settings(tmp_path: Path) -> None:
    """Secrets of it are known as such, and neither they nor the query are shown."""
    path = tmp_path / "config.toml"
    path.write_text(said('topic = "c", kafka = { "sasl.password" = "hunter2-hunter2" }'))
    config = load(path)
    section = pipelines_of(config)["p"].section.expected_counts
    assert section is not None
    assert section.settings(config.kafka_of("p")) == {
        "bootstrap.servers": "127.0.0.1:1", "sasl.password": "hunter2-hunter2",
    }  # fmt: skip
    assert "hunter2-hunter2" in config.secrets
    assert shown(section) == {
        "topic": "c", "kafka": {"sasl.password": "(a text)"}, "query": "(empty)",
    }  # fmt: skip


def test_the_embedded_broker_is_to_have_the_topic(tmp_path: Path) -> None:
    """Not one of another cluster, and none where a query says it."""
    path = tmp_path / "config.toml"
    for text, topics in (
        ('topic = "c"', {"t", "c"}),
        ('topic = "c", kafka = { "bootstrap.servers" = "b:1" }', {"t"}),
        (f'query = "{QUERY}"', {"t"}),
    ):
        path.write_text(said(text, 'database = "shop"'))
        assert load(path).embedded_topics() == topics


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    """By ``check-config --connect``."""
    path = tmp_path / "config.toml"
    path.write_text(said('topic = "c", kafka = { "socket.timeout.ms" = 1000 }'))
    (line,) = own_topics_missing(load(path))
    assert line.startswith("pipeline.p.expected_counts.topic: ")


def test_bounds_are_put_into_the_query(tmp_path: Path) -> None:
    """Each place of them; an end that only tools of people need is left out."""
    path = tmp_path / "config.toml"
    query = "SELECT {from}, '%' FROM a WHERE m >= {from} AND m < {to};"
    path.write_text(said(f'query = "{query}"', 'database = "shop"'))
    section = load(path).pipeline["p"].expected_counts
    assert section is not None
    assert section.sql(range(7, 9)) == "SELECT 7, '%' FROM a WHERE m >= 7 AND m < 9"

"""``[gates.NAME]``: what is refused, and how each is named."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from daemon.config.file import ConfigError, load
from daemon.config.gates import tables_that_say, topic_settings
from daemon.operations.reload.difference import difference

BASE = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
security.protocol = "ssl"
[sink.lake]
kind = "sqlite"
path = "lake.db"
[pipeline.p]
topics = ["t", "gates*"]
format = "debezium-json"
target = "lake.{database}.{table}"
include = ["shop.*"]
[pipeline.forgetful]
topics = ["u"]
format = "debezium-json"
target = "lake.{database}.{table}"
include = ["other.*"]
offset_stores = ["kafka-commit"]
"""
GATE = '[gates.g]\ntables = ["lake.shop.t"]\nevery = "1d"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GATE.replace("gates.g", "gates.G"), "gates.G: a name is small letters"),
        (GATE.replace("lake.shop.t", "lake.else.t"), "gates.g.tables: 'lake.else.t': no target"),
        (GATE.replace("lake.shop.t", "t"), "gates.g.tables: 't': no target of any route"),
        (GATE.replace("lake.shop.t", "lake.other.t"),
         "nothing is recorded of the tables of pipeline forgetful: add \"file\""),
        (GATE.replace("shop.t\"", "shop.t\", \"lake.shop.t\""), "tables: one is named twice"),
        (GATE.replace('["lake.shop.t"]', "[]"), "gates.g.tables: is empty"),
        (GATE.replace("1d", "7h"), "gates.g.every: whole minutes that divide a day"),
        (GATE.replace("1d", "36h"), "gates.g.every: whole minutes that divide a day"),
        (GATE.replace("1d", "61s"), "gates.g.every: whole minutes that divide a day"),
        (GATE.replace("1d", "30s"), "gates.g.every: Input should be greater than or equal to 60"),
        (GATE + 'reopen_for = "60d"', "gates.g.reopen_for: Input should be less than or equal"),
        (GATE + 'from = "2026-11-01"', "gates.g.from: '2026-11-01' needs a zone"),
        (GATE + 'from = "then"', "gates.g.from: 2026-11-01T00:00:00Z is required, not 'then'"),
        (GATE + 'from = "9999-12-31T00:00:00Z"', "gates.g.from: '9999-12-31T00:00:00Z' is too"),
        (GATE + 'success = "marks"', "gates.g.success: 'marks' is no absolute path"),
        (GATE + 'webhook = "ftp://x"', "gates.g.webhook: an address that begins with http"),
        (GATE + 'webhook_secret = "1234567890123456"', "there is no webhook that it could sign"),
        (GATE + 'webhook = "http://x"\nwebhook_secret = "short"', "webhook_secret: 16 characters"),
        (GATE + "kafka.acks = 1", "kafka: there is no topic that it could be for"),
        (GATE + 'topic = "t"', "gates.g.topic: 't' is read by pipeline.p"),
        (GATE + 'topic = "s"\n[jobs]\nsignals_topic = "s"', "gates.g.topic: 's' has another use"),
        (GATE + "late = true", "gates.g.late: unknown key"),
        (GATE + "valid_through = true", "gates.g.valid_through: 'lake.shop.t' is in no lake"),
    ],
)  # fmt: skip
def test_what_is_refused(path: Path, text: str, why: str) -> None:
    path.write_text(BASE + text)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert why in str(error.value)
    assert "short" not in str(error.value)


@pytest.mark.parametrize("every", ["1m", "15m", "1h", "6h", "1d", "7d"])
def test_lengths_that_meet_days(path: Path, every: str) -> None:
    path.write_text(BASE + GATE.replace("1d", every))
    assert load(path).gates["g"].length_ms % 60_000 == 0


def test_its_topic_is_no_patterns_and_may_be_of_another_cluster(path: Path) -> None:
    """There the same name means nothing here."""
    path.write_text(BASE + GATE + 'topic = "gates-told"')
    config = load(path)
    assert "gates-told" in config.topics_of("p").own
    path.write_text(BASE + GATE + 'topic = "t"\nkafka."bootstrap.servers" = "other:9092"')
    config = load(path)
    assert "t" not in config.topics_of("p").own
    assert topic_settings(config.gates["g"], config.kafka) == {
        "bootstrap.servers": "other:9092", "security.protocol": "ssl",
    }  # fmt: skip


def test_a_reload_takes_gates_though_the_daemon_only_shows_them(path: Path) -> None:
    path.write_text(BASE + GATE)
    old = load(path)
    path.write_text(BASE + GATE + 'webhook = "http://127.0.0.1:1/hidden-path"')
    found = difference(old, load(path))
    assert (found.restart, found.pipelines, len(found.lines)) == ((), (), 2)
    assert "hidden-path" not in "\n".join(found.lines).replace("http://127.0.0.1:1/***", "")


def test_a_pipeline_whose_tables_are_to_say_it_starts_again(path: Path) -> None:
    """It alone, and for no other change of a gate."""
    lake = '[sink.lake]\nkind = "iceberg"\n[sink.lake.catalog]\ntype = "rest"\nuri = "http://h"\n'
    base = BASE.replace('[sink.lake]\nkind = "sqlite"\npath = "lake.db"\n', lake)
    found = []
    for more in ("", "valid_through = true", 'valid_through = true\nmargin = "5m"', ""):
        path.write_text(base + GATE + more)
        found.append(load(path))
    assert [difference(*each).pipelines for each in pairwise(found)] == [("p",), (), ("p",)]
    assert tables_that_say(found[1].gates, lambda name: True) == {"lake.shop.t": ("g",)}


def test_the_check_says_what_gates_do(path: Path) -> None:
    path.write_text(BASE + GATE + 'success = "/no/such"\nwebhook = "http://127.0.0.1:1/h"')
    done = CliRunner().invoke(app, ["check-config", "-c", str(path)])
    assert done.exit_code == 0, done.output + done.stderr
    said = done.output + done.stderr
    assert "gate g: every 86400 s of lake.shop.t; told: success, webhook" in said
    assert "gates.g.success: /no/such is no folder" in said
    done = CliRunner().invoke(app, ["check-config", "--connect", "-c", str(path)])
    assert "127.0.0.1:1/h" not in done.output + done.stderr

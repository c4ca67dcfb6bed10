"""What the broker is told."""

from __future__ import annotations

from pathlib import Path

from collector.broker.properties import (
    BrokerSecrets,
    BrokerSettings,
    bounded,
    durable,
    new_cluster_id,
    properties,
)


def test_no_cluster_id_looks_like_an_option() -> None:
    """One of 64 would: a new installation then could not start."""
    made = {new_cluster_id() for _ in range(500)}
    assert len(made) == 500
    assert {len(each) for each in made} == {22}
    assert not [each for each in made if each.startswith("-")]


def test_a_topic_is_bounded_by_files_that_are_small_shares_of_it() -> None:
    """Whole files are removed: one that is as large as the bound would double it."""
    small = bounded(64 << 20, 600.0)
    assert small["log.retention.bytes"] == str(64 << 20)
    assert int(small["log.segment.bytes"]) * 8 == 64 << 20
    assert int(small["log.roll.ms"]) * 8 == int(small["log.retention.ms"]) == 600_000
    assert bounded(1 << 40, 600.0)["log.segment.bytes"] == str(256 << 20)


def test_own_settings_come_last_and_secrets_are_each_for_its_listener() -> None:
    """Bounds replace what the tests' broker keeps for ever; without a login nothing asks."""
    settings = BrokerSettings(
        BrokerSecrets("c" * 64, "k" * 64), more=bounded(1 << 30, 600.0) | durable()
    )
    made = properties(settings, Path("/data"), 1, 2)
    assert made["log.retention.ms"] == "600000"
    assert made["log.flush.interval.messages"] == "1"
    of_clients = {key for key, value in made.items() if "c" * 64 in value}
    of_controller = {key for key, value in made.items() if "k" * 64 in value}
    assert of_clients == {"listener.name.client.scram-sha-256.sasl.jaas.config"}
    assert of_controller == {"listener.name.controller.plain.sasl.jaas.config"}
    assert "PLAINTEXT:" not in made["listener.security.protocol.map"]
    assert not [key for key in properties(BrokerSettings(), Path("/d"), 1, 2) if "sasl" in key]

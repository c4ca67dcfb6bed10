"""Two pipelines of one daemon, each with its own registry: equal ids mean different schemas."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from confluent_kafka import Producer

from changes.formats.engine.format import unpack
from settings.exit import Exit
from tests.changes.formats.wire.records import Kept, json_record
from tests.integration.rig import Rig
from tests.integration.test_process import ended
from tests.integration.test_sqlite_sink import start
from tests.sources.registry.server import RegistryServer, running

pytestmark = pytest.mark.integration

FIELDS = {"a": {"id": "int32", "x": "int32"}, "b": {"id": "int32", "y": "int32"}}
"""Of the same bytes: nothing in a record tells which of the two it is."""


def write_config(rig: Rig, urls: dict[str, str], same_format: str = "debezium") -> Path:
    """A pipeline and a registry of each name."""
    lines = [f"""
        [daemon]
        state_dir = "{rig.folder}/state"
        staging_dir = "{rig.folder}/staging"
        [log]
        file = "{rig.log_file}"
        [batch]
        max_age_s = 0.1
        [kafka]
        "bootstrap.servers" = "{rig.broker.bootstrap}"
        [sink.copy]
        kind = "sqlite"
        path = "copy.db"
    """]  # fmt: skip
    for name, url in urls.items():
        lines.append(f"""
        [registry.{name}]
        url = "{url}"
        not_found_s = 0
        [pipeline.{name}]
        topics = ["{rig.topic}-{name}"]
        group = "g-{rig.db}-{name}"
        format = "{same_format}"
        registry = "{name}"
        target = "copy.{name}.{{table}}"
        """)
    path = rig.folder / "config.toml"
    path.write_text("\n".join(lines))
    return path


def send(rig: Rig, name: str, kept: Kept, server: RegistryServer, *numbers: int) -> None:
    """Rows in Avro; the registry learns their schemas."""
    producer = Producer({"bootstrap.servers": rig.broker.bootstrap})
    other = next(field for field in FIELDS[name] if field != "id")
    for number in numbers:
        made = json_record("c", {"id": number, other: 10 * number}, fields=FIELDS[name])
        key, value, _ = unpack(kept.as_avro(made))
        producer.produce(f"{rig.topic}-{name}", value, key, partition=0)
    assert producer.flush(30) == 0
    for file in kept.registry.folder.iterdir():
        server.ids[file.stem.removeprefix("id-")] = {"schema": json.loads(file.read_text())["text"]}


@pytest.mark.parametrize("format_", ["debezium", "auto"])
def test_equal_ids_of_two_registries_are_two_schemas(rig: Rig, format_: str) -> None:
    """Also after a restart without either."""
    with running() as one, running() as two:
        servers = {"a": one, "b": two}
        kept = {name: Kept(rig.folder / f"producer-{name}") for name in servers}
        for name in servers:
            rig.create_topic(f"{rig.topic}-{name}")
            send(rig, name, kept[name], servers[name], *range(1, 700))
        assert servers["a"].ids.keys() == servers["b"].ids.keys()
        config = write_config(rig, {name: each.url for name, each in servers.items()}, format_)
        assert ended(start(config, "--until-caught-up")) == (Exit.OK.value, "")
    for name in servers:
        send(rig, name, kept[name], servers[name], *range(700, 1400))
    assert ended(start(config, "--until-caught-up")) == (Exit.OK.value, "")
    with sqlite3.connect(rig.folder / "copy.db") as file:
        for name, (_, other) in FIELDS.items():
            found = file.execute(f'SELECT id, {other} FROM "{name}.orders" ORDER BY id').fetchall()
            assert found == [(number, 10 * number) for number in range(1, 1400)]
    file.close()

"""A record that names its schema, kept as a dead letter and replayed through the real broker."""

from __future__ import annotations

import json
import sqlite3

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from changes.formats.engine.format import unpack
from daemon.cli.__main__ import app
from settings.exit import Exit
from tests.changes.formats.wire.records import Kept, json_record
from tests.integration.rig import Rig
from tests.integration.test_process import ended
from tests.integration.test_sqlite_sink import start
from tests.sources.registry.server import RegistryServer, running

GUID = "5f2d6b0e-30c5-4b8e-9a0b-0d1fb9f0a0{:02d}"


class World:
    """Debezium's rows in Avro on a real topic, and a registry that may lack their schemas."""

    def __init__(self, rig: Rig, server: RegistryServer, named_in: str, stored: str) -> None:
        self.rig, self.server, self._named_in = rig, server, named_in
        self._kept = Kept(rig.folder / "producer")
        letters = "file" if stored == "file" else f"topic:{rig.topic}-dead"
        self.config = rig.folder / "config.toml"
        self.config.write_text(f"""
            [daemon]
            state_dir = "{rig.folder}/state"
            staging_dir = "{rig.folder}/staging"
            [log]
            file = "{rig.log_file}"
            [kafka]
            "bootstrap.servers" = "{rig.broker.bootstrap}"
            [sink.copy]
            kind = "sqlite"
            path = "copy.db"
            [registry.main]
            url = "{server.url}"
            not_found_s = 0
            [pipeline.p]
            topics = ["{rig.topic}"]
            group = "g-{rig.db}"
            format = "debezium"
            registry = "main"
            on_bad_record = "dead-letter"
            dead_letters = "{letters}"
            target = "copy.{{database}}.{{table}}"
        """)

    def declare(self, type_: str) -> None:
        """The configured type of the names."""
        text = self.config.read_text().split("[pipeline.p.types]")[0]
        self.config.write_text(f'{text}[pipeline.p.types]\n name = "{type_}"\n')

    def produce(self, number: int, **fields: str) -> None:
        """A row in Avro. The registry does not learn its schemas by that."""
        row = {"id": number, "name": f"n{number}"} | dict.fromkeys(fields, "there")
        made = json_record("c", row, fields={"id": "int32", "name": "string", **fields})
        key, value, _ = unpack(self._kept.as_avro(made))
        assert key is not None
        assert value is not None
        headers: list[tuple[str, str | bytes | None]] = []
        if self._named_in == "headers":
            for name, part in (("__key_schema_id", key), ("__value_schema_id", value)):
                guid = GUID.format(int.from_bytes(part[1:5], "big"))
                headers.append((name, b"\1" + bytes.fromhex(guid.replace("-", ""))))
            key, value = key[5:], value[5:]
        producer = Producer({"bootstrap.servers": self.rig.broker.bootstrap})
        producer.produce(self.rig.topic, value, key, partition=0, headers=headers)
        assert producer.flush(30) == 0

    def register(self) -> None:
        """The registry has all schemas that were written with."""
        for file in self._kept.registry.folder.iterdir():
            text = json.loads(file.read_text())["text"]
            number = int(file.stem.removeprefix("id-"))
            self.server.ids[str(number)] = {"schema": text}
            self.server.guids[GUID.format(number)] = {"schema": text}

    def catch_up(self) -> None:
        status, said = ended(start(self.config, "--until-caught-up"))
        assert status == Exit.OK.value, said

    def letters(self, *arguments: str, status: int = 0) -> str:
        """What a command about them prints; it must end with that status."""
        done = CliRunner().invoke(app, ["dead-letters", *arguments, "--config", str(self.config)])
        assert done.exit_code == status, done.output
        return done.output

    def rows(self) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.rig.folder / "copy.db") as file:
            found = file.execute('SELECT * FROM "shop.orders" ORDER BY id').fetchall()
        file.close()
        return found


@pytest.mark.integration
@pytest.mark.parametrize("stored", ["file", pytest.param("topic", marks=pytest.mark.long)])
@pytest.mark.parametrize("named_in", ["frame", "headers"])
def test_a_record_whose_schema_came_late_is_replayed(rig: Rig, named_in: str, stored: str) -> None:
    """The letter keeps key, value and headers, so that the replayed record names its schema."""
    with running() as server:
        world = World(rig, server, named_in, stored)
        world.produce(1)
        world.register()
        world.produce(2, note="string")
        world.produce(3)
        world.catch_up()
        assert world.rows() == [(1, "n1"), (3, "n3")]
        (letter,) = json.loads(world.letters("list", "--json"))
        assert (letter["offset"], letter["replayed"]) == (1, None)
        world.produce(4, more="string")  # it may be of the same row: nobody can read it yet
        assert "registry main" in world.letters("replay", "--all", "--execute", status=2)
        world.register()
        shown = json.loads(world.letters("show", f"{rig.topic}:0:1", "--json"))
        assert shown[0]["decode"]["changes"][0]["after"]["note"] == "there"
        world.letters("replay", "--all", "--execute")
        world.catch_up()
        assert [row[:2] for row in world.rows()] == [(n, f"n{n}") for n in (1, 2, 3, 4)]
        assert {value for row in world.rows() for value in row[2:]} == {None, "there"}
        (letter,) = json.loads(world.letters("list", "--json"))
        assert letter["replayed"]


@pytest.mark.integration
@pytest.mark.parametrize("stored", ["file", pytest.param("topic", marks=pytest.mark.long)])
@pytest.mark.parametrize("named_in", ["frame", "headers"])
def test_a_record_is_replayed_after_its_registry_is_gone(
    rig: Rig, named_in: str, stored: str
) -> None:
    """Its schemas are kept: they are those that it names, whatever became of the registry."""
    with running() as server:
        world = World(rig, server, named_in, stored)
        world.produce(1)
        world.produce(2, note="string")
        world.register()
        world.declare("int")
        world.catch_up()
        assert len(json.loads(world.letters("list", "--json"))) == 2
    world.declare("string")
    shown = json.loads(world.letters("show", f"{rig.topic}:0:1", "--json"))
    assert shown[0]["decode"]["error"] is None
    world.letters("replay", "--all", "--execute")
    world.catch_up()
    assert world.rows() == [(1, "n1", None), (2, "n2", "there")]

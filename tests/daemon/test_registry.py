"""A whole daemon whose records name schemas, and a registry that is away, slow, wrong or emptied.

The registry is a real HTTP server, the log is in memory, the tables are SQLite's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changes.formats.engine.format import pack, unpack
from settings.exit import Exit
from sources import opening
from tests.changes.formats.wire.records import Kept, json_record
from tests.daemon.flow import Flow, Log
from tests.sources.registry.server import RegistryServer, running

MORE = {"id": "int32", "name": "string", "more": "string"}


class Shop:
    """The daemon, its registry, and what writes Debezium's records in Avro to two topics."""

    def __init__(
        self, folder: Path, server: RegistryServer, log: Log, said: pytest.CaptureFixture[str]
    ) -> None:
        self.server, self.log, self.said = server, log, said
        self._kept = Kept(folder / "the-registry's")
        self.flow = Flow(folder, log, self.text())
        self.schemas = folder / "state" / "schemas" / "main"

    def text(self, *, bad: str = "stop", login: str = "", **section: object) -> str:
        more = "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        return f"""
            [registry.main]
            url = "{self.server.url}"
            timeout_s = 5
            {login}
            {more}
            [pipeline.p]
            topics = ["t", "u"]
            format = "debezium"
            registry = "main"
            offset_stores = ["file"]
            on_bad_record = "{bad}"
            target = "copy.{{database}}.{{table}}"
        """

    def write(self, topic: str, number: int, **fields: Any) -> None:
        """A row in Avro; its schemas are registered by the producer."""
        self._kept.registry.folder.mkdir(exist_ok=True)
        row = {"id": number, "name": "x", "more": "y"}
        record = json_record("c", row, **fields)
        self.log.produce(topic, self._kept.as_avro(record))
        for file in self._kept.registry.folder.iterdir():
            schema = json.loads(file.read_text())
            number_ = file.stem.removeprefix("id-")
            self.server.ids.setdefault(number_, {"schema": schema["text"]})

    def plain(self, topic: str, number: int) -> None:
        """A row of another table in JSON, which names no schema."""
        key, value, headers = unpack(json_record("c", {"id": number, "name": "x"}))
        assert value is not None
        self.log.produce(topic, pack(key, value.replace(b'"orders"', b'"items"'), headers))

    def applied(self, count: int) -> None:
        self.flow.until(lambda: self.rows == count)

    @property
    def rows(self) -> int:
        return self.flow.count("orders") + self.flow.count("items")

    def failed(self) -> str:
        """Wait until the pipeline has failed, then end the daemon; the reason."""
        self.flow.until(lambda: self.pipeline["failure"] and self.pipeline["stage"] == "ended")
        self.flow.stop(Exit.PIPELINE_FAILED)
        return self.said.readouterr().err

    @property
    def pipeline(self) -> dict[str, Any]:
        return dict(self.flow.pipelines()["p"])

    def condition(self, kind: str) -> str:
        """Wait for a condition; its line."""

        def look() -> str:
            found = self.flow.ask("status")["conditions"]
            return next((each["line"] for each in found if each["kind"] == kind), "")

        return self.flow.until(look)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Shop]:
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    with running() as server:
        yield Shop(tmp_path, server, log, capsys)


def test_rows_come_with_the_schemas_that_the_registry_has(shop: Shop) -> None:
    """And a second life with the registry away reads on from the folder."""
    shop.write("t", 1)
    shop.flow.start()
    shop.applied(1)
    shop.flow.stop()
    assert sorted(file.name for file in shop.schemas.iterdir()) == ["id-1.json", "id-2.json"]
    shop.server.stop()
    shop.write("t", 2)
    shop.flow.start()
    shop.applied(2)
    assert "gives no answer" in shop.condition("registry_away")
    assert shop.pipeline["messages_awaiting_schemas"] == 0
    shop.flow.stop()


def test_a_registry_that_is_away_holds_its_partitions_alone(shop: Shop) -> None:
    """At the start and in the middle: other topics go on, nothing is lost, the order stays."""
    shop.server.stop()
    for number in (1, 2):
        shop.write("t", number)
    shop.plain("u", 10)
    shop.flow.start()
    shop.applied(1)
    line = shop.condition("registry_away")
    assert "2 messages of t wait for schema id 1, id 2" in line
    assert "127.0.0.1" in line
    (held,) = (p for p in shop.pipeline["partitions"] if p["source"] == "t:0")
    assert held["position"] == 0
    shop.server.start()
    shop.applied(3)
    shop.server.stop()
    shop.write("t", 3, fields=MORE)
    shop.write("t", 4)
    shop.plain("u", 11)
    shop.applied(4)
    shop.condition("registry_away")
    shop.server.start()
    shop.applied(6)
    shop.flow.until(lambda: not shop.pipeline["messages_awaiting_schemas"])
    shop.flow.stop()


def test_a_slow_registry_holds_nobody_else(shop: Shop) -> None:
    """The question hangs; the other topic's rows come before its answer."""
    shop.server.gate.clear()
    shop.write("t", 1)
    shop.flow.start()
    shop.plain("u", 10)
    shop.applied(1)
    assert "wait for schema" in shop.condition("schema_awaited")
    shop.server.gate.set()
    shop.applied(2)
    shop.flow.stop()


def test_a_token_that_has_ended_is_read_again(shop: Shop, tmp_path: Path) -> None:
    """Named while it lasts; a new one in the file is all it takes."""
    token = tmp_path / "token"
    token.write_text("an-old-token")
    shop.flow.write(shop.text(login=f'bearer_token = "${{file:{token}}}"'))
    shop.server.ill = lambda path: (
        None if shop.server.logins[-1] == "Bearer a-new-token" else (401, {}, b"expired")
    )
    shop.write("t", 1)
    shop.flow.start()
    assert "the login is refused (HTTP 401)" in shop.condition("registry_away")
    token.write_text("a-new-token")
    shop.applied(1)
    shop.flow.stop()


def test_a_schema_that_nobody_has_stops_by_name(shop: Shop) -> None:
    """After the grace; what came before it is applied, and a later run finds it."""
    shop.flow.write(shop.text(not_found_s=0))
    shop.write("t", 1)
    lost = dict(shop.server.ids)
    shop.server.ids.clear()
    shop.flow.start()
    failure = shop.failed()
    assert "p: t:0 offset 0: registry main does not have it: schema id " in failure
    assert "Register it again under this number" in failure
    shop.server.ids.update(lost)
    shop.flow.start()
    shop.applied(1)
    shop.flow.stop()


def test_a_schema_that_nobody_has_makes_dead_letters(shop: Shop) -> None:
    """With the record's own bytes, frame and all; the reason names registry and schema."""
    shop.flow.write(shop.text(bad="dead-letter", not_found_s=0))
    shop.write("t", 1)
    lost = dict(shop.server.ids)
    shop.server.ids.clear()
    shop.flow.start()
    shop.flow.until(lambda: shop.pipeline["dead_letters"]["stored"] == 1)
    (letter,) = (shop.flow.folder / "state" / "p.dead-letters.jsonl").read_text().splitlines()
    found = json.loads(letter)
    assert found["error"].startswith("registry main does not have it: schema id 1: Schema not")
    assert b"\0\0\0\0\2" in base64.b64decode(found["value"])
    shop.flow.stop()
    shop.server.ids.update(lost)
    shop.flow.start()
    shop.write("t", 2)
    shop.applied(1)
    shop.flow.stop()


def test_a_registry_that_was_emptied_is_found(shop: Shop) -> None:
    """Its numbers have a second meaning: nothing is decoded with either, until it is mended."""
    shop.write("t", 1)
    shop.flow.start()
    shop.applied(1)
    shop.flow.stop()
    first = {number: dict(found) for number, found in shop.server.ids.items()}
    for found in shop.server.ids.values():
        found["schema"] = '{"type": "record", "name": "Other", "fields": []}'
    shop.write("t", 2)
    shop.flow.start()
    assert "is another one than before" in shop.failed()
    shop.write("t", 3)
    rows = shop.rows
    shop.flow.start()
    assert "is another one than before" in shop.failed()
    assert shop.rows == rows
    shop.server.ids.update(first)
    shop.flow.start()
    shop.applied(3)
    shop.flow.stop()

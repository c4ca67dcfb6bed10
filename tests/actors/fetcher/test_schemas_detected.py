"""Under ``format = "auto"`` a topic's format is detected behind the frames of a registry."""

from __future__ import annotations

from pathlib import Path

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from changes.model.registry import Registry
from changes.routes.routing import Route, Router
from offsets.recovery import Watermarks
from tests.actors.fetcher.test_schemas import A0, B0, fetched
from tests.changes.formats.wire.records import Kept, json_record


def auto(folder: Path | None = None) -> FetcherLogic:
    """Two partitions of topics whose formats are detected."""
    registry = None if folder is None else Registry("confluent", folder)
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    settings = FetcherSettings(registry=registry)
    logic = FetcherLogic("p", AutoFormat(FormatOptions(registry=registry)), router, 1, settings)
    logs = dict.fromkeys((A0, B0), Watermarks(0, 100))
    logic.handle(msg.Assigned(dict.fromkeys((A0, B0), 0), logs), 0.0)
    return logic


def messages_of(out: list[fx.FetcherEffect]) -> list[object]:
    return [each.message for each in out if isinstance(each, fx.Tell)]


def test_a_topic_s_format_is_detected_once_its_schema_is_there(tmp_path: Path) -> None:
    """A frame waits for its schema first, and a topic of another format for nothing."""
    kept = Kept(tmp_path / "registry")
    avro = kept.as_avro(json_record("c", {"id": 1, "name": "x"}))
    logic = auto(tmp_path / "state")
    canal = b'{"database":"s","table":"t","type":"INSERT","isDdl":false,"data":[{"id":"1"}]}'
    out = logic.handle(msg.Polled((fetched(A0, avro), fetched(B0, pack(None, canal)))), 0.0)
    assert msg.FormatDetected("b", "canal-json") in messages_of(out)
    (wanted,) = (each for each in out if isinstance(each, fx.WantSchemas))
    assert len(wanted.identities) == 2
    (tmp_path / "registry").rename(tmp_path / "state")
    out = logic.handle(msg.SchemasKept(wanted.identities), 0.0)
    assert msg.FormatDetected("a", "debezium") in messages_of(out)
    plain = json_record("c", {"id": 2, "name": "x"})  # the same topic in JSON
    out = logic.handle(msg.Polled((fetched(A0, plain, first=1),)), 0.0)
    (dispatched,) = (each for each in messages_of(out) if isinstance(each, msg.Dispatched))
    assert dispatched.lanes == {"lake.shop.orders": (1, 1)}


def test_a_schema_that_comes_late_shows_the_format_of_what_waits(tmp_path: Path) -> None:
    """Though the topic is quiet, and no other message makes the fetcher look again."""
    kept = Kept(tmp_path / "registry")
    avro = kept.as_avro(json_record("c", {"id": 1, "name": "x"}))
    logic = auto(tmp_path / "state")
    out = logic.handle(msg.Polled((fetched(A0, avro),)), 0.0)
    (wanted,) = (each for each in out if isinstance(each, fx.WantSchemas))
    for identity in wanted.identities:
        out = logic.handle(msg.SchemaMissing(identity, "none"), 0.0)
    assert messages_of(out) == []
    (tmp_path / "registry").rename(tmp_path / "state")
    out = logic.handle(msg.SchemasKept(wanted.identities), 0.0)
    (dispatched,) = (each for each in messages_of(out) if isinstance(each, msg.Dispatched))
    assert dispatched.lanes == {"lake.shop.orders": (0, 0)}


def test_without_a_registry_a_frame_is_named() -> None:
    """At once: no message that follows would change that."""
    out = auto().handle(msg.Polled((fetched(A0, pack(None, b"\0\0\0\0\7abc")),)), 0.0)
    (failed,) = (each for each in messages_of(out) if isinstance(each, msg.PipelineFailed))
    assert failed.reason == (
        "a holds a record that can't be read: it names schema 7 of a schema registry, and no "
        "registry is configured for the pipeline"
    )

"""Spills of formats whose records have keys: what is read again is what the fetcher gave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.contract.effects import LogRange, Spill
from changes.formats import TopicFormats, make_format
from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import mark_in, mark_of, unpack
from changes.model.model import FormatOptions, Mode, TargetName
from changes.routes.routing import Route, Router
from daemon.state.spills.file import SpillError, SpillFolder
from daemon.state.spills.spills import PipelineSpills, check_marks
from offsets.position import TopicPartition
from offsets.snapshot import SpillMark
from sources.base.port import LogRecord
from tests.changes.formats.debezium.messages import key_with_schema, record, typed

S0 = TopicPartition("topic", 0)
T = TargetName("lake", "shop", "orders")
FIELDS = {"id": "int32"}
RECORDS = [
    typed("c", FIELDS, {"id": 1}),
    record(None, key_with_schema({"id": 1}, FIELDS)),
    record({"ts_ms": 5}),
]


class Log:
    """A log that holds these records."""

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        for offset, packed in enumerate(RECORDS):
            key, value, headers = unpack(packed)
            yield LogRecord(offset, key, value, tuple(headers), 0)


def test_keys_and_tombstones_are_read_again(tmp_path: Path) -> None:
    """A tombstone has no value, and would be lost were it passed over for that."""
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    format_ = DebeziumJson(FormatOptions())
    spills = PipelineSpills(SpillFolder(tmp_path, "p"), Log(), format_, router)  # type: ignore[arg-type]
    spills.append(Spill(T, "why", (LogRange(S0, 0, 2),), ()))
    found, _ = spills.read(T, 0, 1 << 20)
    assert [each.value for each in found] == RECORDS[:2]


def test_what_is_read_again_has_its_topics_format(tmp_path: Path) -> None:
    """Told by the fetcher, never anew: its first message is not the topic's first."""
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    topics = TopicFormats()
    format_ = AutoFormat(FormatOptions(), topics)
    spills = PipelineSpills(SpillFolder(tmp_path, "p"), Log(), format_, router)  # type: ignore[arg-type]
    topics.choose("topic", "debezium-json")
    spills.append(Spill(T, "why", (LogRange(S0, 0, 2),), ()))
    found, _ = spills.read(T, 0, 1 << 20)
    assert {mark_in(each.value) for each in found} == {mark_of("debezium-json")}
    assert [unpack(each.value) for each in found] == [unpack(each) for each in RECORDS[:2]]


@pytest.mark.parametrize(("kept", "now"), [("auto", "debezium-json"), ("debezium-json", "auto")])
def test_a_spill_outlives_no_change_from_or_to_auto(tmp_path: Path, kept: str, now: str) -> None:
    """Its messages name their format, or they don't: they would be taken for damaged ones."""
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    topics = TopicFormats({"topic": "debezium-json"})
    folder = SpillFolder(tmp_path, "p")
    then, later = (make_format(name, FormatOptions(), topics) for name in (kept, now))
    spills = PipelineSpills(folder, Log(), then, router)  # type: ignore[arg-type]
    state = spills.append(Spill(T, "why", (LogRange(S0, 0, 2),), ()))
    found = folder.found({str(T): SpillMark(state.bytes, dict(state.lanes))})
    check_marks(found, then)
    with pytest.raises(SpillError, match="release it with that"):
        check_marks(found, later)

"""``format = "auto"`` with the real parts: topics of several formats, and what a restart keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from settings.exit import Exit
from tests.changes.formats import protobuf_records as wire
from tests.integration.rig import Rig, canal


def ogg(rig: Rig, op: str, after: Any = None, before: Any = None) -> bytes:
    told = {"table": f"{rig.db}.users", "op_type": op, "primary_keys": ["id"], "pos": "1"}
    return json.dumps(told | {"before": before, "after": after}).encode()


def packets(rig: Rig, *keys: int) -> list[bytes]:
    columns = [[wire.canal_column("id", str(key), "int(11)", key=True)] for key in keys]
    rows = [wire.canal_row((), each) for each in columns]
    return [wire.canal_packet(wire.canal_rows("INSERT", [row], "events", rig.db)) for row in rows]


@pytest.mark.long
def test_topics_of_several_formats_in_one_pipeline(rig: Rig) -> None:
    """Each is told by itself, an empty one not yet; a restart keeps what was told."""
    topics = {name: f"{rig.topic}-{name}" for name in ("users", "events", "empty")}
    for topic in topics.values():
        rig.create_topic(topic)
    t = f"{rig.db}.orders"
    config = rig.write_config(
        p=rig.pipeline(
            format="auto", topics=[rig.topic, *topics.values()], on_bad_record="dead-letter"
        )
    )
    rig.produce(canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    rig.produce(b"null", ogg(rig, "I", {"id": 1, "name": "u"}), topic=topics["users"])
    rig.produce(*packets(rig, 1, 2), topic=topics["events"])
    assert rig.run(config) is Exit.OK
    formats = {rig.topic: "canal-json", topics["users"]: "ogg-json"}
    formats[topics["events"]] = "canal-protobuf"
    assert rig.snapshot().formats == formats
    assert {e["topic"]: e["format"] for e in rig.events("format_told")} == formats
    assert rig.rows("orders") == [(1, "a", 1)]
    assert rig.rows("users") == [("1", "u")]
    assert rig.rows("events") == [(1,), (2,)]

    # Of a topic that is told another format's message is a bad one; the empty one is told now.
    rig.produce(
        ogg(rig, "I", {"id": 9, "name": "stray"}),
        canal(t, "UPDATE", [{"id": 1, "name": "b", "qty": 1}], old=[{"name": "a"}]),
    )
    rig.produce(ogg(rig, "U", {"id": 1, "name": "v"}), topic=topics["users"])
    rig.produce(canal(f"{rig.db}.late", "INSERT", [{"id": 5, "name": "l", "qty": 0}]),
                topic=topics["empty"])  # fmt: skip
    assert rig.run(config) is Exit.OK
    assert rig.snapshot().formats == formats | {topics["empty"]: "canal-json"}
    assert [e["topic"] for e in rig.events("format_told")].count(rig.topic) == 1
    assert rig.rows("orders") == [(1, "b", 1)]
    assert rig.rows("users") == [("1", "v")]
    assert rig.rows("late") == [(5, "l", 0)]
    letters = (rig.folder / "state" / "p.dead-letters.jsonl").read_text().splitlines()
    (letter,) = [each for each in map(json.loads, letters) if each["topic"] == rig.topic]
    assert (letter["offset"], "without a type" in letter["error"]) == (1, True)


def test_a_topic_whose_format_can_not_be_told_stops_the_pipeline(rig: Rig) -> None:
    """With what came, and the formats that it may be of; nothing of it counts as read."""
    config = rig.write_config(p=rig.pipeline(format="auto"))
    rig.produce(b'{"id": 1, "name": "x"}', b'{"id": 2, "name": "y"}')
    assert rig.run(config) is Exit.PIPELINE_FAILED
    assert f"{rig.topic}: its format can't be detected from its first 2 messages" in rig.stderr
    assert "an object of id, name (2); it may be of none that is known" in rig.stderr
    assert {state.frontier for state in rig.snapshot().partitions.values()} == {0}

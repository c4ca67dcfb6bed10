"""Keys that are not where they belong, or do not tell their row, are refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from actors.staging.key_lanes import CountUnknown, Elsewhere, KeyLanes, NotByKey, Records
from changes.formats.engine.format import mark_of, pack
from changes.model.model import Column, TableSchema, TargetName
from changes.routes.shaping.shape import NO_SHAPE, Shape
from offsets.key_partitioning import KeyPartitioning, Partitioned
from offsets.position import TopicPartition
from tests.simulation.keyed.stream import partition_of

TARGET = TargetName("lake", "s", "t")
SIX = Partitioned("murmur2", {"shop": 6})
SCHEMA = TableSchema((Column("id", pa.int64()), Column("v", pa.string())), ("id",))


def lane(*keys: bytes | None, partition: int | None = None, topic: str = "shop") -> Records:
    """Records with these keys, in the first one's partition."""
    at = partition_of(keys[0] or b"", 6) if partition is None else partition
    values = [pack(key, b"{}") for key in keys]
    return Records(TopicPartition(topic, at), range(10, 10 + len(keys)), values)


def found(*lanes: Records, **other: Any) -> KeyPartitioning | None:
    """How they are spread, by a reader that has seen nothing else."""
    asked: dict[str, Any] = {"partitioned": SIX, "schema": SCHEMA, "shape": NO_SHAPE, **other}
    return KeyLanes().partitioning(TARGET, lanes=lanes, **asked)


def test_keys_in_their_partitions_are_spread_over_the_topic() -> None:
    """Lanes without records say nothing; a marked record (format auto) has its key, too."""
    spread = found(lane(b'{"id":1}'), lane(b'{"id":2}'), lane(b'{"id":3}'))
    assert spread is not None
    assert (spread.topic, spread.partitions, spread.checked) == ("shop", 6, True)
    assert spread.key.startswith("id integer")
    assert found() is None
    marked = lane(b'{"id":1}')
    assert found(marked._replace(values=[mark_of("debezium-json") + marked.values[0]])) == spread


def test_a_record_elsewhere_is_named_with_its_place_and_the_way_out() -> None:
    """Its key belongs into another partition."""
    good = lane(b'{"id":1}')
    wrong = good._replace(source=TopicPartition("shop", (good.source.partition + 1) % 6))
    with pytest.raises(Elsewhere) as refused:
        found(wrong)
    said = str(refused.value)
    assert said.startswith(f"{wrong.source} offset 10: by murmur2 its key ")
    assert f"partition {good.source.partition} of 6" in said
    assert "`binlogd tables load`" in said


@pytest.mark.parametrize(
    ("lanes", "other", "why"),
    [
        ([lane(b'{"id":1}', None)], {}, "offset 11: a record without a key"),
        ([lane(b"1")], {}, "offset 10: the record key b'1' is no JSON object"),
        ([lane(b'{"id":1}', b'{"id": 1}')], {}, "offset 11: the record keys have another form"),
        ([lane(b'{"id":1}'), lane(b'{"id":1}', topic="store")], {}, "come from shop and store"),
        ([lane(b'{"v":"a"}')], {}, r"the record key has v, which is no column of the target's key"),
    ],
)
def test_keys_that_do_not_tell_their_row_are_refused(lanes: Any, other: Any, why: str) -> None:
    with pytest.raises(NotByKey, match=why):
        found(*lanes, **other)


def test_a_text_with_several_spellings_needs_a_schema() -> None:
    """1.0 and 1.00 are one decimal: only the schema says which of them its scale writes."""
    price = TableSchema((Column("id", pa.decimal128(9, 2)),), ("id",))
    with pytest.raises(NotByKey, match=r"key column id is decimal128\(9, 2\).*as text without"):
        found(lane(b'{"id":"1.00"}'), schema=price)
    typed = b'{"schema":{"scale":2},"payload":{"id":"ZA=="}}'
    assert found(lane(typed), schema=price) is not None
    assert found(lane(b'{"id":"a"}'), schema=TableSchema((Column("id", pa.string()),), ("id",)))


def test_the_columns_are_the_routes() -> None:
    """A renamed key is still the key; one among several is enough."""
    wide = TableSchema((Column("number", pa.int64()), Column("v", pa.string())), ("v", "number"))
    assert found(lane(b'{"id":1}'), schema=wide, shape=Shape(rename=(("id", "number"),)))


def test_a_key_column_that_avro_can_not_spell_is_the_table_s() -> None:
    """A record key has it as its field is called; the route may rename it, too."""
    framed = lane(b'\0id 7{"id_x":1}')
    assert found(framed, schema=TableSchema((Column("id x", pa.int64()),), ("id x",)))
    assert found(framed, shape=Shape(rename=(("id x", "id"),)))
    with pytest.raises(NotByKey, match="the record key has id_x, which is no column"):
        found(framed)


def test_an_unknown_partitioner_is_believed_and_a_count_is_waited_for() -> None:
    """Keys are not looked at; the number of partitions is kept all the same."""
    unknown = Partitioned("unknown", {"shop": 6})
    assert found(lane(None, partition=3), partitioned=unknown) == KeyPartitioning("shop", 6)
    with pytest.raises(CountUnknown, match="how many partitions shop has"):
        found(lane(b'{"id":1}'), partitioned=Partitioned("murmur2", {}))


def test_another_form_after_a_load_is_taken() -> None:
    """What is remembered only saves work: the target knows whether another form may come."""
    lanes = KeyLanes()
    first = lanes.partitioning(TARGET, SIX, [lane(b'{"id":1}')], SCHEMA, NO_SHAPE)
    second = lanes.partitioning(TARGET, SIX, [lane(b'{"id": 1}')], SCHEMA, NO_SHAPE)
    assert first is not None
    assert second is not None
    assert second.problem_after(first, ()) is not None

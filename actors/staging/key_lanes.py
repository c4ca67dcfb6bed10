"""Checks that each record is in the partition of its key, and that the key tells its row.

For pipelines whose keys have one partition each (``partitioned_by = "key"``): their lanes are
written side by side, and nothing but this orders the changes of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from changes.formats.engine.format import packed_keys
from changes.formats.engine.layout import Refused
from changes.formats.wire.connect import respelled
from changes.formats.wire.record_keys import KeyForm, key_form
from changes.model.model import TableSchema, TargetName
from changes.model.partitioners import first_elsewhere
from changes.routes.shaping.shape import Shape
from offsets.key_partitioning import RELOAD, KeyPartitioning, Partitioned, other_form
from offsets.position import TopicPartition


class Records(NamedTuple):
    """Neighbouring packed records of one lane."""

    source: TopicPartition
    offsets: Sequence[int]
    values: Sequence[bytes]


class NotByKey(Exception):
    """A table's changes are not in the partitions of their keys, or nobody can tell: one line."""


class Elsewhere(NotByKey):
    """A record is not in its key's partition. More partitions may have been added just now."""


class CountUnknown(Exception):
    """How many partitions a topic has is not known yet: one line."""


class KeyLanes:
    """Looks at the record keys of one pipeline's batches; used by one thread.

    The form that a target's keys had last is remembered to save work: the target keeps it, too.
    """

    def __init__(
        self, record_keys: Callable[[Sequence[bytes]], Sequence[bytes | None]] = packed_keys
    ) -> None:
        """``record_keys``: that of the pipeline's format."""
        self._record_keys = record_keys
        self._forms: dict[TargetName, KeyForm] = {}

    def partitioning(
        self,
        target: TargetName,
        partitioned: Partitioned,
        lanes: Sequence[Records],
        schema: TableSchema,
        shape: Shape,
    ) -> KeyPartitioning | None:
        """How the keys of these records are spread, None where there is no record.

        Raises NotByKey, CountUnknown.
        """
        topics = sorted({lane.source.topic for lane in lanes})
        if not topics:
            return None
        if len(topics) > 1:
            raise NotByKey(
                f"its rows come from {' and '.join(topics)}, and a key may be in more than one of "
                "them: give each topic a target of its own"
            )
        (topic,) = topics
        if topic not in partitioned.counts:
            raise CountUnknown(f"how many partitions {topic} has is not known yet")
        count = partitioned.counts[topic]
        if not partitioned.checked:
            return KeyPartitioning(topic, count)
        form = self._forms.get(target)
        if form is not None and not form.fits(self._spelled(lanes[0])[:1]):
            form = None  # whether another one may come the target says, which keeps the former
        for lane in lanes:
            keys = _keys_of(lane)
            form = _one_form(form, self._spelled(lane), lane)
            _check_place(partitioned.partitioner, count, keys, lane)
        assert form is not None
        _check_columns(form, schema, shape)
        self._forms[target] = form
        return KeyPartitioning(topic, count, form.text, checked=True)

    def _spelled(self, lane: Records) -> list[bytes]:
        """The keys as JSON. Raises NotByKey."""
        try:
            return [key for key in self._record_keys(lane.values) if key is not None]
        except Refused as refused:
            raise NotByKey(
                f"{lane.source} from offset {lane.offsets[0]} on: {refused}"
            ) from refused


def _keys_of(lane: Records) -> list[bytes]:
    found = packed_keys(lane.values)
    keys = [key for key in found if key is not None]
    if len(keys) < len(found):
        place = f"{lane.source} offset {lane.offsets[found.index(None)]}"
        raise NotByKey(f"{place}: a record without a key: have its writer set one")
    return keys


def _one_form(form: KeyForm | None, keys: Sequence[bytes], lane: Records) -> KeyForm | None:
    """The one form of these keys, and of those before in the batch. Raises NotByKey."""
    place = 0
    try:
        if form is None and keys:
            form = key_form(keys[0])
        if form is None or form.fits(keys):
            return form
        place = next(at for at, key in enumerate(keys) if not form.fits((key,)))
        other = key_form(keys[place])
    except Refused as refused:
        raise NotByKey(f"{lane.source} offset {lane.offsets[place]}: {refused}") from refused
    raise NotByKey(
        f"{lane.source} offset {lane.offsets[place]}: {other_form(form.text, other.text)}"
    )


def _check_place(partitioner: str, count: int, keys: Sequence[bytes], lane: Records) -> None:
    found = first_elsewhere(partitioner, keys, count, lane.source.partition)
    if found is None:
        return
    place, belongs = found
    raise Elsewhere(
        f"{lane.source} offset {lane.offsets[place]}: by {partitioner} its key "
        f"{keys[place][:80].decode(errors='replace')} belongs into partition {belongs} of {count}: "
        "another partitioner wrote it (set partitioner), or partitions were added before or after "
        f"it: {RELOAD}"
    )


def _check_columns(form: KeyForm, schema: TableSchema, shape: Shape) -> None:
    """Raise NotByKey unless equal keys of the target are equal record keys."""
    keys = {key.lower(): key for key in schema.keys}
    sources = respelled([*(source for source, _ in shape.rename), *schema.keys])
    types = {column.name: column.type for column in schema.columns}
    for field, kind in form.columns:
        name = sources.get(field, field)
        shown = shape.name_of(name)
        key = keys.get(shown.lower())
        if key is None:
            raise NotByKey(
                f"the record key has {name}, which is no column of the target's key "
                f"({', '.join(schema.keys)}): changes of one row may be in several partitions"
            )
        masked = shape.mask_of(name) is not None and kind != "text"
        if not (form.typed or masked or _has_one_spelling(kind, types[key])):
            raise NotByKey(
                f"key column {name} is {types[key]}, and the record keys have it as {kind} without "
                "a schema: one value may have several spellings, each with a partition of its own. "
                "Have the key's converter write schemas (key.converter.schemas.enable = true)"
            )


def _has_one_spelling(kind: str, type_: pa.DataType) -> bool:
    """Whether a value of the target's type comes as one text alone: "1.0" and "1.00" are two."""
    return kind != "text" or bool(pa.types.is_string(type_) or pa.types.is_binary(type_))

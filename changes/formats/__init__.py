"""The change formats: one module each, of the same shape, and the registry of their names."""

from __future__ import annotations

import pyarrow as pa

from changes.formats.aliyun.dts_avro import AliyunDtsAvro
from changes.formats.canal.json import CanalJson
from changes.formats.canal.protobuf import CanalProtobuf
from changes.formats.debezium.json import DebeziumJson
from changes.formats.debezium.untyped import ConfiguredWireTypes
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.format import Format
from changes.formats.maxwell.json import MaxwellJson
from changes.formats.ogg.json import OggJson
from changes.formats.tencent.dts import TencentDts
from changes.formats.upsert.json import UpsertJson
from changes.formats.wire.format import Debezium, Upsert
from changes.model.model import ColumnTypes

FORMATS: dict[str, type[Format]] = {
    "aliyun-dts-avro": AliyunDtsAvro,
    "canal-json": CanalJson,
    "canal-protobuf": CanalProtobuf,
    "debezium": Debezium,
    "debezium-json": DebeziumJson,
    "maxwell-json": MaxwellJson,
    "ogg-json": OggJson,
    "tencent-dts": TencentDts,
    "upsert": Upsert,
    "upsert-json": UpsertJson,
}
"""Every format by the name that the configuration calls it. Making one raises ValueError where
its options can't be met."""


def configured_types(types: ColumnTypes) -> dict[str, pa.DataType]:
    """What the lake keeps of the columns of declared types, by name in lower case."""
    return {name: kind.arrow for name, kind in ConfiguredWireTypes.of(types).types.items()}


def check_types(format_name: str, types: ColumnTypes) -> None:
    """Raise ValueError, with the column's name, for a declared type that the format can't read.

    Debezium's own names of types are read by its format alone, and where the format is not named.
    """
    if format_name in FORMATS and format_name not in ("debezium", "debezium-json", "upsert"):
        ConfiguredTypes.of(types)
    else:
        ConfiguredWireTypes.of(types)

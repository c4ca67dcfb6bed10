"""The change formats: one module each, of the same shape, and the registry of their names."""

from __future__ import annotations

from changes.formats.aliyun_dts_avro import AliyunDtsAvro
from changes.formats.base import Format
from changes.formats.canal_json import CanalJson
from changes.formats.canal_protobuf import CanalProtobuf
from changes.formats.debezium_json import DebeziumJson
from changes.formats.maxwell_json import MaxwellJson
from changes.formats.ogg_json import OggJson
from changes.formats.tencent_dts import TencentDts

FORMATS: dict[str, type[Format]] = {
    "aliyun-dts-avro": AliyunDtsAvro,
    "canal-json": CanalJson,
    "canal-protobuf": CanalProtobuf,
    "debezium-json": DebeziumJson,
    "maxwell-json": MaxwellJson,
    "ogg-json": OggJson,
    "tencent-dts": TencentDts,
}
"""Every format by the name that the configuration calls it. Making one raises ValueError where
its options can't be met."""

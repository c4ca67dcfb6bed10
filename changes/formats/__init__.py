"""The change formats: a folder each, of the same shape, and the registry of their names.

A format is imported when somebody uses it: who reads a configuration needs one of them or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

from changes.model.model import ColumnTypes, FormatOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from changes.formats.engine.format import Format

AUTO = "auto"
"""The name that has binlogd find out the format of each topic."""


class Formats(MutableMapping[str, "type[Format]"]):
    """By the name that the configuration calls it. One of ours is named by its class's place, and
    imported when it is looked up."""

    def __init__(self, homes: Mapping[str, str | type[Format]]) -> None:
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> type[Format]:
        home = self._homes[name]
        if isinstance(home, str):
            module, _, kind = home.rpartition(".")
            home = self._homes[name] = getattr(import_module(f"{__name__}.{module}"), kind)
        return home

    def __setitem__(self, name: str, kind: type[Format]) -> None:
        self._homes[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._homes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes


FORMATS = Formats(
    {
        "aliyun-dts-avro": "aliyun.dts_avro.AliyunDtsAvro",
        "canal-json": "canal.json.CanalJson",
        "canal-protobuf": "canal.protobuf.CanalProtobuf",
        "debezium": "wire.format.Debezium",
        "debezium-json": "debezium.json.DebeziumJson",
        "maxwell-json": "maxwell.json.MaxwellJson",
        "ogg-json": "ogg.json.OggJson",
        "tencent-dts": "tencent.dts.TencentDts",
        "upsert": "wire.format.Upsert",
        "upsert-json": "upsert.json.UpsertJson",
    }
)
"""Every format. Making one raises ValueError where its options can't be met."""

NEED_OPTIONS = frozenset(("upsert", "upsert-json"))
"""Formats whose defaults alone are not enough. The others are not imported to check defaults."""

NAMES = (AUTO, *sorted(FORMATS))
"""The names that a configuration may hold."""


class TopicFormats:
    """The formats of a pipeline's topics, as far as detected. A topic's format never changes.

    The fetcher's thread adds a topic before any message of it is dispatched; any thread may read.
    ``known`` is never changed, only replaced as a whole, so readers need no lock.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.known: Mapping[str, str] = dict(known or {})

    def of(self, topic: str) -> str | None:
        """The topic's format, None where it is not known yet."""
        return self.known.get(topic)

    def choose(self, topic: str, name: str) -> None:
        """Add a topic's format. Raises ValueError where it has another one."""
        if self.known.get(topic, name) != name:
            raise ValueError(f"the format of {topic} is {self.known[topic]} already, not {name}")
        self.known = {**self.known, topic: name}


def make_format(name: str, options: FormatOptions, topics: TopicFormats | None = None) -> Format:
    """Make a format by its configured name; raises ValueError where an option can't be met.

    ``topics``: for ``auto``, the formats detected so far; without them only marked records can be
    read.
    """
    if name != AUTO:
        return FORMATS[name](options)
    made: Format = import_module(f"{__name__}.auto").AutoFormat(options, topics)
    return made


def check_options(name: str, options: FormatOptions) -> None:
    """Raise ValueError where an option can't be met. What is left at its default is known to be."""
    if name in NEED_OPTIONS or options != FormatOptions(by_key=options.by_key):
        make_format(name, options)


def option_names(name: str) -> list[str]:
    """The options that a format takes, by its configured name."""
    kinds = [*FORMATS.values()] if name == AUTO else [FORMATS[name]]
    placed = any(kind.positions is not None for kind in kinds)
    own = frozenset(option for kind in kinds for option in kind.options)
    return sorted(own | {"positions"} if placed else own)


def configured_types(types: ColumnTypes) -> dict[str, pa.DataType]:
    """What the lake keeps of the columns of declared types, by name in lower case."""
    from changes.formats.debezium.untyped import ConfiguredWireTypes

    return {name: kind.arrow for name, kind in ConfiguredWireTypes.of(types).types.items()}


def check_types(format_name: str, types: ColumnTypes) -> None:
    """Raise ValueError, with the column's name, for a declared type that the format can't read.

    Debezium's own names of types are read by its format alone, and where the format is not named.
    """
    if not types:
        return
    from changes.formats.debezium.untyped import ConfiguredWireTypes
    from changes.formats.engine.configured_types import ConfiguredTypes

    if format_name in FORMATS and format_name not in ("debezium", "debezium-json", "upsert"):
        ConfiguredTypes.of(types)
    else:
        ConfiguredWireTypes.of(types)

"""How a reader's records are written: JSON, or with a schema registry, and by whose converter.

A wire has several forms where converters have settings that change the bytes; seeds take turns.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_CONFLUENT_AVRO = "io.confluent.connect.avro.AvroConverter"
_CONFLUENT_PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
_APICURIO_AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
CONVERTERS: Mapping[str, Sequence[str]] = {
    "confluent": (_CONFLUENT_AVRO, _CONFLUENT_PROTOBUF),
    "apicurio": (_APICURIO_AVRO, "io.apicurio.registry.utils.converter.ExtJsonConverter"),
}
"""By the plugin that has them. Their jars don't say so themselves, as Connect wants it."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which keys and values become bytes."""

    name: str
    converter: str
    """A class of Connect's; empty for JSON, which a relay may write again."""
    frame: int
    """Bytes before the payload of a key."""
    registry: str = "confluent"
    """Of what kind the registry is to those who read: ``kind`` in binlogd's section."""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_relayed(self) -> bool:
        """Whether JSON is read and written again with JSON Schemas: no converter is to be had."""
        return self.name == "jsonschema"


_BY_APICURIO: Mapping[str, str] = {"apicurio.registry.auto-register": "true"}
_IN_FRAMES = {**_BY_APICURIO, "apicurio.registry.headers.enabled": "false"}
JSON = Form("json", "", 0, registry="")
WIRES: Mapping[str, Sequence[Form]] = {
    "json": (JSON,),
    "avro": (
        Form("avro", _CONFLUENT_AVRO, 5),
        Form("avro-headers", _APICURIO_AVRO, 0, "apicurio", _BY_APICURIO),
        Form("avro-global-ids", _APICURIO_AVRO, 9, "apicurio", _IN_FRAMES),
        Form("avro-content-ids", _APICURIO_AVRO, 5, "apicurio", {
            **_IN_FRAMES, "apicurio.registry.as-confluent": "true",
            "apicurio.registry.use-id": "contentId",
        }),
    ),
    # Without either of these a NULL, a zero and an empty text are the same bytes.
    "proto": (
        Form("proto", _CONFLUENT_PROTOBUF, 6, settings={"optional.for.nullables": "true"}),
        Form("proto-wrappers", _CONFLUENT_PROTOBUF, 6, settings={"wrapper.for.nullables": "true"}),
    ),
    "jsonschema": (Form("jsonschema", "", 5),),
}  # fmt: skip
FORMS: Mapping[str, Form] = {form.name: form for forms in WIRES.values() for form in forms}


def form_of(seed: int, wires: Sequence[str]) -> Form:
    """The form of a seed: wires take turns, and of each its forms. Sources take turns by the last
    bit of a seed already."""
    turn, place = divmod(seed // 2, len(wires))
    forms = WIRES[wires[place]]
    return forms[turn % len(forms)]


def unread(form: Form) -> Sequence[str]:
    """Statements that such records can't tell, as patterns."""
    if form.name.startswith("proto"):
        return (*_LOST, *_LOST_BY_PROTOBUF)
    return _LOST if form.converter else ()


_LOST = (
    # Beside "a b", which Debezium then calls so, too: a table with both ends the connector.
    r"\ba_b\b",
    # These converters write a column's default where NULL stands, and no setting is against it:
    # binlogd only warns (docs/formats.md).
    r"(?i)\bDEFAULT\b(?! NULL)",
)
_LOST_BY_PROTOBUF = (
    # A column's name has letters, digits and "_" alone, and the source's is nowhere. That of a
    # table is in each record.
    r"""(?i)(?:[(,]\s*|\b(?:ADD|COLUMN|EXISTS|TO)\s+|[`"]\s+)"""
    r"""[`"](?![A-Z_][A-Z0-9_]*[`"])[^`"]+[`"](?![.\w])""",
    # The names of types are nowhere either: what is counted from 1970 is a number.
    r"(?i)\b(?:date|time|datetime|timestamp|timetz|timestamptz|interval|year|bit|varbit)\b",
    # NULL and an empty list are the same, and a NULL in a list ends the connector.
    r"\[\]|\bARRAY\b",
)


def of_connector(form: Form, confluent_url: str, apicurio_url: str) -> Mapping[str, str]:
    """Further settings of a connector of Debezium."""
    if not form.converter:
        return {}
    where = (
        {"apicurio.registry.url": apicurio_url}
        if form.registry == "apicurio"
        else {"schema.registry.url": confluent_url}
    )
    return {
        # Without it a name that Avro doesn't have ends the connector.
        "schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro",
        **{
            f"{part}.converter{name}": value
            for part in ("key", "value")
            for name, value in {
                "": form.converter, **{f".{n}": v for n, v in {**where, **form.settings}.items()},
            }.items()
        },
    }  # fmt: skip

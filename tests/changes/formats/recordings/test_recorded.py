"""The recordings are whole: each form has each change, and the schema of each key and value."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from changes.formats.wire.frames import frame_of
from changes.formats.wire.schemas import SchemaId
from changes.model.registry import Registry
from tests.changes.formats.recordings.recorded import FORMS, SOURCES, recording

OF_APICURIO = ("avro-headers", "avro-global-ids", "avro-content-ids")
UNREAD = "s.null_elements"
"""A table with NULL in arrays, at which the converters of Protobuf end the connector."""


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_changes(source: str, form: str) -> None:
    """As many of each table as the plain JSON, with the same ones null."""

    def counted(name: str) -> Counter[tuple[str, bool, bool]]:
        found = recording(source, name).records
        return Counter(
            (one.table, one.key is None, one.value is None) for one in found if one.table != UNREAD
        )

    assert counted(form) == counted("json")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "json"])
def test_each_key_and_value_names_a_schema_that_is_there(source: str, form: str) -> None:
    """And none is there that no record names."""
    recorded = recording(source, form)
    registry = Registry("apicurio" if form in OF_APICURIO else "confluent", Path("unused"))
    found: set[SchemaId] = set()
    for one in recorded.records:
        for data, is_key in ((one.key, True), (one.value, False)):
            if data is not None:
                frame = frame_of(data, one.headers, registry, is_key=is_key)
                assert frame is not None
                found.add(frame.schema)
    assert found == set(recorded.schemas)
    assert len(found) > len(SOURCES)

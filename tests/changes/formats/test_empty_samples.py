"""Records without a value, of which Flink's tests say that they yield nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Kind
from tests.changes import conformance

EMPTY = [(None, "null"), (b"", "zero-length")]


def empty(name: str) -> list[Any]:
    """A format's cases."""
    return [
        conformance.case(name, value, id=f"flink/{what} of {name}", of=name)
        for value, what in EMPTY
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [*empty("canal-json"), *empty("debezium-json"), *empty("maxwell-json"), *empty("ogg-json")],
)
def test_an_empty_record_yields_nothing(name: str, value: bytes | None) -> None:
    """Whatever it was the end of, there is no change in it."""
    told = json.loads((conformance.folder() / "flink/expectations.json").read_text())
    assert name.removesuffix("-json") in told["other_behaviour"][0]
    format_ = FORMATS[name](FormatOptions())
    given = pack(None, value) if format_.keyed else value
    assert format_.peek(given).kind is Kind.NOTHING
    assert format_.explain(given) == ()

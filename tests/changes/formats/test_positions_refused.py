"""Formats that know no source positions say so, instead of leaving lanes unguarded."""

from __future__ import annotations

import pytest

from tests.changes.formats.json_messages import made


@pytest.mark.parametrize("name", ["maxwell-json", "ogg-json", "aliyun-dts-avro", "upsert-json"])
def test_positions(name: str) -> None:
    """The option is refused when the configuration is read."""
    with pytest.raises(ValueError, match=f"{name} gives no positions"):
        made(name, positions="tidb-commit-ts")

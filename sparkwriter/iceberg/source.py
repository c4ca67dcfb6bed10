"""How a table in the lake says which of the source's tables it is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from changes.model import TableName
from sparkwriter.iceberg.java import LakeTable

SOURCE = "binlogd.source"
"""Table property: the source's table, ``["database", "table"]``. A table without it takes the
first one that writes."""


def source_text(table: TableName | None) -> Mapping[str, str]:
    """The property that says it; none where it is not known, or several."""
    return {} if table is None else {SOURCE: json.dumps(table, ensure_ascii=False)}


def source_of(table: LakeTable, renaming: Mapping[str, Any] | None) -> TableName | None:
    """What a table says. ``renaming``: how it got the name that it has, where that is not noted."""
    said = (renaming or {}).get("source") or json.loads(table.property(SOURCE) or "null")
    return None if said is None else TableName(*map(str, said))

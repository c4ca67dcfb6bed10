"""How a table is laid out in files: read from its metadata, compared with its route's options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from changes.model.errors import TargetRefused
from changes.routes.shaping.layout import Sort, Transform
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import LakeColumn, arrow_type
from sparkwriter.iceberg.section import FileLayout
from sparkwriter.session.java_api import Java

_TRANSFORM = re.compile(r"(identity|year|month|day|hour)|(bucket|truncate)\[(\d+)\]")

UNPARTITIONED = 0
"""The partitioning that our tables begin with: none, and the first. Keys that are deleted keep it:
they are deleted in every partition."""


class StoredLayout(NamedTuple):
    """A table's partitioning and order. ``spec``: as Iceberg's JSON. ``parts``, ``order``: None
    where they are not of those that we lay. ``specs``: how many partitionings it ever had."""

    spec: Mapping[str, Any]
    parts: tuple[Transform, ...] | None
    order: tuple[Sort, ...] | None
    specs: int = 1

    @property
    def spec_id(self) -> int:
        """The partitioning's number."""
        return int(self.spec["spec-id"])

    @property
    def unfit(self) -> str | None:
        """Why we lay no files for it, None where we do."""
        if self.parts is None:
            return f"the table is partitioned by {_words(self.spec['fields'])}"
        return "the table has a sort order by expressions" if self.order is None else None


def layout_of(
    spec: Mapping[str, Any],
    order: Mapping[str, Any],
    fields: Sequence[LakeField],
    *,
    specs: int = 1,
) -> StoredLayout:
    """A table's layout, by its metadata."""
    by_id = {field.id: field for field in fields}
    parts = [_part(each, by_id) for each in spec["fields"]]
    sorts = [_sort(each, by_id) for each in order["fields"]]
    return StoredLayout(
        spec,
        None if None in parts else tuple(part for part in parts if part is not None),
        None if None in sorts else tuple(sort for sort in sorts if sort is not None),
        specs,
    )


def _part(said: Mapping[str, Any], fields: Mapping[int | None, LakeField]) -> Transform | None:
    found, field = _TRANSFORM.fullmatch(said["transform"]), fields.get(said["source-id"])
    if found is None or field is None:
        return None
    part = Transform(found[1] or found[2], field.name, int(found[3] or 0))
    return None if part.problem(arrow_type(field.type)) else part


def _sort(said: Mapping[str, Any], fields: Mapping[int | None, LakeField]) -> Sort | None:
    field = fields.get(said["source-id"])
    if field is None or said["transform"] != "identity":
        return None
    return Sort(field.name, said["direction"] == "desc")


def _words(fields: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{field['transform']} of column {field['source-id']}" for field in fields)


def check_layout(asked: FileLayout, stored: StoredLayout) -> None:
    """Raise TargetRefused where a route asks for another layout than the table has."""
    for key, wanted, held in (
        ("partition_by", asked.partitions, stored.parts),
        ("sort_by", asked.order, stored.order),
    ):
        if not wanted or _lower(wanted) == _lower(held or ()):
            continue
        has = ", ".join(each.text for each in held or ()) or "nothing that it knows"
        raise TargetRefused(
            f"{key} asks for {', '.join(each.text for each in wanted)}, the table has {has}: give "
            "the route the table's own, or fill it again with `binlogd tables rebuild`"
        )


def _lower(parts: Iterable[Transform | Sort]) -> list[str]:
    return [part.text.lower() for part in parts]


def lay_out(transaction: Java, jvm: Java, asked: FileLayout, columns: Iterable[LakeColumn]) -> None:
    """Have a table that is being made be laid out so. Raises TargetRefused."""
    types = {column.name.lower(): column for column in columns}
    iceberg = jvm.org.apache.iceberg
    make = iceberg.expressions.Expressions
    if asked.partitions:
        update = transaction.updateSpec()
        for part in asked.partitions:
            column = _known(types, "partition_by", part.column)
            if (problem := part.problem(arrow_type(column.type))) is not None:
                raise TargetRefused(f"partition_by: {problem}")
            own = part._replace(column=column.name)
            if part.kind != "identity" and own.name.lower() in types:
                raise TargetRefused(
                    f"partition_by: {part.text} would be named {own.name}, as a column is"
                )
            update.addField(own.name, _term(make, own))
        update.commit()
    if asked.order:
        ordered = transaction.replaceSortOrder()
        for sort in asked.order:
            by = make.ref(_known(types, "sort_by", sort.column).name)
            nulls = iceberg.NullOrder.valueOf("NULLS_FIRST")
            ordered = ordered.desc(by, nulls) if sort.descending else ordered.asc(by, nulls)
        ordered.commit()


def _known(columns: Mapping[str, LakeColumn], key: str, name: str) -> LakeColumn:
    if name.lower() not in columns:
        raise TargetRefused(f"{key} names column {name}, which the table does not have")
    return columns[name.lower()]


def _term(make: Java, part: Transform) -> Java:
    if part.kind == "identity":
        return make.ref(part.column)
    maker = getattr(make, part.kind)
    return maker(part.column, part.width) if part.width else maker(part.column)


def partition_json(layout: StoredLayout, schema: Mapping[str, Any], files: list[Any]) -> str:
    """A scan task with these files of deletions, as Iceberg's JSON."""
    return json.dumps(
        {
            "task-type": "file-scan-task",
            "schema": schema,
            "spec": layout.spec,
            "data-file": {**_NO_FILE, "spec-id": layout.spec_id, "partition": _nulls(layout)},
            "start": 0,
            "length": 0,
            "delete-files": files,
            "residual-filter": True,
        }
    )


_NO_FILE = {
    "content": "data",
    "file-path": "none",
    "file-format": "parquet",
    "file-size-in-bytes": 1,
    "record-count": 1,
}


def _nulls(layout: StoredLayout) -> list[None]:
    return [None] * len(layout.spec["fields"])

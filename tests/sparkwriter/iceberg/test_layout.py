"""A table's layout as its metadata says it, and what a route may ask beside that."""

from __future__ import annotations

from typing import Any

import pytest

from changes.model.errors import TargetRefused
from changes.routes.shaping.layout import Sort, Transform
from changes.sql.spark.ddl_plan import LakeField
from sparkwriter.iceberg.layout import StoredLayout, check_layout, layout_of
from sparkwriter.iceberg.section import FileLayout

FIELDS = (LakeField(1, "id", "long"), LakeField(2, "At", "timestamp"), LakeField(3, "d", "double"))


def stored(*parts: tuple[str, int], sorts: tuple[tuple[str, int, str], ...] = ()) -> StoredLayout:
    spec: dict[str, Any] = {"spec-id": 4, "fields": []}
    for transform, source in parts:
        spec["fields"].append({"name": "x", "transform": transform, "source-id": source})
    order = [{"transform": t, "source-id": at, "direction": way} for t, at, way in sorts]
    return layout_of(spec, {"fields": order}, FIELDS)


def test_what_the_metadata_says() -> None:
    found = stored(("day", 2), ("bucket[16]", 1), sorts=(("identity", 2, "desc"),))
    assert found.spec_id == 4
    assert found.parts == (Transform("day", "At"), Transform("bucket", "id", 16))
    assert found.order == (Sort("At", descending=True),)
    assert found.unfit is None


@pytest.mark.parametrize(
    "found",
    [
        stored(("void", 1)),
        stored(("day", 99)),
        stored(("identity", 3)),
        stored(("zorder[3]", 1)),
        stored(sorts=(("bucket[2]", 1, "asc"),)),
    ],
)
def test_what_we_do_not_lay(found: StoredLayout) -> None:
    """Other transforms, columns that are gone, types whose values engines write differently."""
    assert found.unfit is not None


def test_a_route_may_say_what_the_table_has() -> None:
    """Or nothing; by any spelling."""
    found = stored(("day", 2), sorts=(("identity", 1, "asc"),))
    check_layout(FileLayout(), found)
    check_layout(FileLayout((Transform("day", "AT"),), (Sort("ID"),)), found)
    with pytest.raises(TargetRefused, match=r"partition_by asks for hours\(at\), the table has"):
        check_layout(FileLayout((Transform("hour", "at"),)), found)
    with pytest.raises(TargetRefused, match="sort_by asks for id desc, the table has id"):
        check_layout(FileLayout(order=(Sort("id", descending=True),)), found)
    with pytest.raises(TargetRefused, match="the table has nothing that it knows"):
        check_layout(FileLayout((Transform("day", "at"),)), stored(("void", 2)))

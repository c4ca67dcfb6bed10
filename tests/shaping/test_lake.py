"""Shaped targets in the lake, in both ways to write."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from changes.routes.shaping.shape import Shape
from sparkwriter.iceberg.sink import IcebergWriter
from tests.shaping import oracle, test_filters
from tests.shaping.rig import SALT, Change, Flow, bring, route_of
from tests.shaping.test_additions import Remembering
from tests.shaping.test_additions import shown as last_shown
from tests.shaping.test_history import Versions, identity

pytestmark = pytest.mark.integration

FILTERED = Shape(
    filter="NOT n = 2",
    computed=(("tag", "coalesce(note, '-') || ':' || CAST(id AS string)"),),
    drop=("phone",),
)
MASKED = Shape(
    masks=(("id", "sha256"), ("phone", "keep_last(2)")), rename=(("id", "key"),), salt=SALT
)
KEPT = Shape(
    delete="soft",
    metadata=("_op", "_offset", "_partition"),
    masks=(("phone", "redact"),),
    rename=(("id", "key"),),
)
SHAPES = {
    "filtered": FILTERED,
    "masked": MASKED,
    "kept": KEPT,
    "history": Shape(history=True, rename=(("phone", "tel"),)),
    "parted": Shape(
        filter="coalesce(n, 0) <> 2",
        rename=(("id", "key"),),
        partition_by=("note", "truncate(1, phone)"),
    ),
}


class Careful(Remembering):
    """Partial images, but of rows that the filter of ``parted`` left out: those may enter."""

    def message(self, change: Change) -> bytes | None:
        before = self.rows.get(change.key)
        self._minimal = before is None or before["n"] != 2
        return super().message(change)


def random_changes(rng: random.Random, count: int, kinds: str = "IIUUDM") -> list[Change]:
    """As Hypothesis draws them, of few keys."""
    made = []
    for _ in range(count):
        row = {
            "n": rng.choice((None, -1, 1, 2, 3)),
            "phone": rng.choice((None, "", "12", "12345")),
            "note": rng.choice((None, "", "späße")),
        }
        names = rng.sample(["n", "phone", "note"], rng.randint(1, 3))
        key, new = rng.randrange(8), rng.randrange(8)
        made.append(Change(rng.choice(kinds), key, new, row, tuple(names)))
    return made


def expected(name: str, source: Remembering | Versions) -> list[Any]:
    """The rows that the target is to have."""
    shape = SHAPES[name]
    if isinstance(source, Versions):
        return source.versions()
    if name == "kept":
        every = {**source.rows, **source.gone}
        return [last_shown(key, row, source, True, True) for key, row in every.items()]
    if name == "masked":
        return oracle.shown(shape, source.rows)
    return test_filters.shown(shape, source.rows)


@pytest.mark.parametrize("write", ["merge", pytest.param("equality", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name",
    [
        "filtered",
        pytest.param("masked", marks=pytest.mark.long),
        "kept",
        "history",
        pytest.param("parted", marks=pytest.mark.long),
    ],
)
def test_the_lakes_table_is_the_shape_of_the_sources(
    spark: Any, shared_staging: Any, tmp_path: Path, name: str, write: str
) -> None:
    """Rows enter and leave, keys move, members come and go, rows change their partition; masks,
    filters and kept rows of partial images, too."""
    shape = SHAPES[name]
    layout = [("partition_by", json.dumps(shape.partition_by))] if shape.partition_by else []
    route = route_of(shape, options=[("write", write), *layout])
    target = route.name._replace(namespace=f"shaped_{write}", table=name)
    flow = Flow(
        route.__class__(target, route.mode, None, (), route.options, shape),
        tmp_path,
        lambda: IcebergWriter(spark, shared_staging=shared_staging),
    )
    rng = random.Random(name)
    minimal = name != "filtered"
    kinds: dict[str, type[Remembering | Versions]] = {"history": Versions, "parted": Careful}
    source = kinds.get(name, Remembering)(minimal)
    if name == "parted":
        # Of these changes eight batches or so are decided by what is stored.
        rng = random.Random("parted2")
        made, longest = random_changes(rng, 130, "IIUUUUUDM"), 10
    else:
        made, longest = random_changes(rng, 70), 12
    bring(flow, source, made, [rng.randrange(longest) for _ in range(9)])
    assert flow.refused is None
    rows = spark.newSession().table(f"lake.shaped_{write}.{name}").toArrow().to_pylist()
    wanted = expected(name, source)
    order = identity if name == "history" else repr
    assert sorted(rows, key=order) == sorted(wanted, key=order)
    assert rows
    if name == "parted":
        for note in (None, "", "späße"):
            asked = f"SELECT key FROM lake.shaped_{write}.{name} WHERE note <=> :note"
            found = {row[0] for row in spark.newSession().sql(asked, {"note": note}).collect()}
            assert found == {row["key"] for row in wanted if row["note"] == note}, note
    if name == "kept" and isinstance(source, Remembering):
        query = f"SELECT count(*) FROM lake.shaped_{write}.{name} WHERE _deleted"
        assert spark.newSession().sql(query).first()[0] == len(source.gone) > 0

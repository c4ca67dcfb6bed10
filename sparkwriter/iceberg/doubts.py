"""What a metadata commit says of a table beside its snapshot: the mark of rows that may differ, the
source's table, the shape of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkwriter.iceberg.look import DIFFERS, LABELS, RENAMING, SHAPE, Seen
from sparkwriter.iceberg.source import source_text
from sparkwriter.kit.store import Facts
from sparkwriter.session.java_failures import Java


def set_mark(builder: Java, before: str | None, after: str | None) -> None:
    """Have a metadata builder change the mark."""
    if after is None and before is not None:
        builder.removeProperties({DIFFERS})
    elif after is not None and after != before:
        builder.setProperties({DIFFERS: after})


def shape_text(shape: str) -> Mapping[str, str]:
    """The property that says which shape the rows have; none where it is the source's own."""
    return {SHAPE: shape} if shape else {}


def also_of(
    seen: Seen, after: Facts, properties: Mapping[str, str] | None = None
) -> Callable[[Java], None] | None:
    """What a write of rows changes in its commit beside the snapshot, None where nothing.

    The marks that came with the table's name are in its snapshots from then on. ``properties``:
    those of the table that its route asks for.
    """
    text = {**source_text(after.source), **shape_text(after.shape), **(properties or {})}
    text |= {LABELS: after.labels} if after.labels else {}
    told = all(seen.table.property(name) == value for name, value in text.items())
    shaped = seen.shape and not after.shape
    if not seen.renamed and after.differs == seen.differs and told and not shaped:
        return None

    def change(builder: Java) -> None:
        if seen.renamed:
            builder.removeProperties({RENAMING})
        if shaped:
            builder.removeProperties({SHAPE})
        if not told:
            builder.setProperties(text)
        set_mark(builder, seen.differs, after.differs)

    return change

"""How a metadata commit sets the mark of a table whose stored rows may differ."""

from __future__ import annotations

from collections.abc import Callable

from changes.model import TableName
from sparkwriter.iceberg.look import DIFFERS, RENAMING, Seen
from sparkwriter.iceberg.source import source_text
from sparkwriter.session.java_failures import Java


def set_mark(builder: Java, before: str | None, after: str | None) -> None:
    """Have a metadata builder change the mark."""
    if after is None and before is not None:
        builder.removeProperties({DIFFERS})
    elif after is not None and after != before:
        builder.setProperties({DIFFERS: after})


def also_of(
    seen: Seen, after: str | None, source: TableName | None
) -> Callable[[Java], None] | None:
    """What a write of rows changes in its commit beside the snapshot, None where nothing.

    ``after`` is the mark and ``source`` the table that it is of, both once it is published.
    The marks that came with the table's name are in its snapshots from then on.
    """
    text = source_text(source)
    told = all(seen.table.property(name) == value for name, value in text.items())
    if not seen.renamed and after == seen.differs and told:
        return None

    def change(builder: Java) -> None:
        if seen.renamed:
            builder.removeProperties({RENAMING})
        if not told:
            builder.setProperties(dict(text))
        set_mark(builder, seen.differs, after)

    return change

"""What the log says of a batch that was sorted."""

from __future__ import annotations

from collections.abc import Iterator

from actors.contract import effects as fx
from actors.fetcher.sorting import Sorted
from offsets.position import TopicPartition


def remarks(source: TopicPartition, found: Sorted) -> Iterator[fx.Log]:
    """Statements that nobody follows, tables that are left out, messages that are passed over."""
    for what in found.unread:
        yield fx.Log("warning", "ddl_not_understood", {"what": what})
    for note in found.notes:
        yield fx.Log("warning", "table_named_by_schema", {"what": note})
    for table, why in found.left_out.items():
        fields = {"database": table.database, "table": table.table, "reason": why}
        yield fx.Log("warning", "table_left_out", fields)
    for why, which in found.passed_over.items():
        first = {"source": str(source), "offset": which.first, "messages": which.count}
        yield fx.Log("warning", "messages_passed_over", {**first, "what": why})

"""NULLs that Kafka Connect may have replaced by a column's default: one warning, and no mark."""

from __future__ import annotations

import json
from pathlib import Path

from changes.formats.base import pack
from changes.model import Mode
from changes.routing import Route
from tests.actors.processor.test_column_changes import FIELDS, Stream, row

EVENT = "nulls_may_be_defaults"
N = {"type": "double", "default": 1.5}
FILLED = FIELDS | {"n": N, "m": N}
TOLD = "db.t: NULL may have come as the column's default: n, m"


def test_a_table_is_told_once_with_its_columns(tmp_path: Path) -> None:
    """The stored rows may be right: no mark, and no change of columns either."""
    stream = Stream(tmp_path)
    for number in range(3):
        stream.send((row(number, n=1.5, m=2.5), FILLED))
    assert stream.rig.logged(EVENT) == [TOLD]
    (said,) = (entry for entry in stream.rig.logs if entry.event == EVENT)
    assert "replace.null.with.default" in said.fields["help"]
    assert (stream.reported, stream.mark) == ([], None)


def test_decoders_that_begin_again_do_not_repeat_it(tmp_path: Path) -> None:
    """It is said once in a run; a column that gets a default later is named alone."""
    stream = Stream(tmp_path)
    stream.send((row(1, n=1.5), FIELDS | {"n": N}))
    source = {"connector": "postgresql", "schema": "db", "table": "t", "ts_ms": 1}
    stream.offset += 1
    truncate = pack(None, json.dumps({"op": "t", "source": source}).encode())
    stream.rig.send("t", (stream.offset, truncate), ddl=True)
    stream.rig.settle()
    stream.send((row(2, n=1.5, m=2.5), FILLED))
    assert [what.rpartition(": ")[2] for what in stream.rig.logged(EVENT)] == ["n", "m"]


def test_a_changelog_and_tables_that_share_a_target_are_told_too(tmp_path: Path) -> None:
    """A default that was written for a NULL is wrong in any target."""
    for mode in Mode:
        routes = (Route(("*",), (), f"lake.{mode.value}.t", mode, None),)
        stream = Stream(tmp_path / mode.value, routes=routes)
        for table in ("a", "b"):
            stream.send((row(ord(table), n=1.5, m=2.5), FILLED), table=table)
        told = [what.partition(":")[0] for what in stream.rig.logged(EVENT)]
        assert told == ["db.a", "db.b"]

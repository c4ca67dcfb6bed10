"""Repairs on real servers: each row that differs is written as the source has it, and told."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.state.edits import EditRefused
from offsets.fence import Fenced
from offsets.position import repair_lane
from tests.daemon.operations.verify.rig import LANE, Rig
from tests.daemon.operations.verify.test_verify_real import PLANTED, rig

pytestmark = pytest.mark.integration

__all__ = ["rig"]


def test_all_planted_differences_are_repaired(rig: Rig) -> None:
    """In one write: rows are put in, put right, and taken away; then the two are equal."""
    for _, sql in PLANTED.values():
        rig.lake(sql)
    result = rig.verified(repair=True)
    (table,) = result["tables"]
    assert result["equal"]
    assert result["repaired"] == len(PLANTED)
    told = {int(row["key"]["id"]): row for row in table["repaired"]}
    assert told.keys() == PLANTED.keys()
    assert told[14]["columns"] == {"price": ["14.05", "14.06"]}
    assert told[-1]["what"] == "extra"
    assert all("the log has no change of it" in row["why"] for row in told.values())
    again = rig.verified()
    assert again["equal"]
    assert again["tables"][0]["rows"] == again["tables"][0]["target_rows"] == 300


def test_the_stream_s_marks_stay_and_the_repair_s_lane_is_shown_to_nobody(rig: Rig) -> None:
    """The next write of the stream goes on where it was."""
    rig.lake(PLANTED[14][1])
    before = rig.writer.open(rig.target)
    rig.verified(repair=True)
    after = rig.writer.open(rig.target)
    assert after.hwms == before.hwms == {LANE: 0}
    assert after.version != before.version


def test_a_row_that_the_log_changes_just_now_is_left_to_the_stream(rig: Rig) -> None:
    """What a read shows of it may be older than what the target has."""
    rig.lake(PLANTED[14][1])
    rig.lake(PLANTED[11][1])
    edit = rig.control.edit

    def late(pipeline: str, change: Any) -> None:
        changed = {
            "database": rig.schema, "schema": rig.schema, "table": "t", "type": "UPDATE",
        }  # fmt: skip
        rig.log.times = {LANE: rig.log.ends()[LANE]}  # where it ended a margin ago
        rig.change(14, changed)
        edit(pipeline, change)

    rig.control.edit = late  # type: ignore[method-assign]
    (table,) = rig.verified(repair=True)["tables"]
    assert [row["key"] for row in table["repaired"]] == [{"id": "11"}]
    assert "not repaired: 1 row, which the source changes just now" in table["notes"]


def test_nothing_is_written_where_something_was_published_meanwhile(rig: Rig) -> None:
    """The write names each lane where it stood: it is refused, and the row stays told."""
    rig.lake(PLANTED[14][1])
    write = rig.writer.write

    own = repair_lane("").topic

    def fenced(batch: Any) -> Any:
        assert next(lane for lane in batch.lanes if lane != LANE).topic.startswith(own)
        raise Fenced("lane shop:0 stands at 7, expected 0")

    rig.writer.write = fenced  # type: ignore[method-assign]
    (table,) = rig.verified(repair=True)["tables"]
    assert table["notes"] == ["not repaired: lane shop:0 stands at 7, expected 0"]
    assert not table["equal"]
    rig.writer.write = write  # type: ignore[method-assign]
    assert rig.verified(repair=True)["equal"]


def test_a_pipeline_that_can_t_be_edited_leaves_the_rows_told(rig: Rig) -> None:
    """With the reason."""
    rig.lake(PLANTED[14][1])

    def refused(pipeline: str, change: Any) -> None:
        raise EditRefused("the daemon is stopping")

    rig.control.edit = refused  # type: ignore[method-assign]
    result = rig.verified(repair=True)
    assert result["tables"][0]["notes"] == ["not repaired: the daemon is stopping"]
    assert not result["equal"]


def test_a_table_whose_rows_can_t_be_had_whole_is_not_repaired(rig: Rig) -> None:
    """A column that the target lacks would be missing in each row that is written."""
    rig.lake(PLANTED[14][1])
    rig.run(f"ALTER TABLE {rig.schema}.t ADD COLUMN later INT")
    (table,) = rig.verified(repair=True)["tables"]
    assert any("whole rows can't be had" in note for note in table["notes"])
    assert not table["repaired"]

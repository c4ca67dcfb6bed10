"""The readers that are processes: what their logs say."""

from __future__ import annotations

from tests.live.canal import unread_event
from tests.live.checkpoint import cause
from tests.live.evidence import bare

_LOG = """0 [main] WARN LogEventConvert  - --> init table filter : ^m1_.*$
3459 [destination = live , EventParser] WARN MysqlEventParser  - ERROR ## parse this event has an \
error , last position : [EntryPosition[journalName=bin.000001,position=1209]]
CanalParseException: parse row data failed.
Caused by: CanalParseException: column size is not match for table:m1_b.it's,5 vs 4
3463 [destination = live , EventParser] ERROR MysqlEventParser  - dump address has an error
"""


def test_an_event_that_canal_does_not_read_is_told() -> None:
    """It goes on trying, so the process alone tells nothing."""
    assert cause(unread_event(_LOG)).endswith("column size is not match for table:m1_b.it's,5 vs 4")


def test_an_outage_is_none() -> None:
    """The database is away for a while, and comes again."""
    lost = "3463 [x] ERROR MysqlEventParser  - dump address has an error, retrying\n4000 [x] WARN\n"
    assert unread_event(lost) == ""


def test_a_key_that_is_no_json_is_kept() -> None:
    """Maxwell's statements have one that is drawn by lot: not for it is evidence given up."""
    assert bare(b"31245222-91c1-4905") == "b'31245222-91c1-4905'"
    assert bare(b'{"payload": {"id": 1}}') == {"id": 1}
    assert bare(None) is None

"""A target that is in quarantine for a statement that no policy lets pass has a way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.admin.status.conditions import Condition
from daemon.admin.status.health import conditions
from offsets.snapshot import UNWRITTEN
from sources import opening
from tests.daemon.flow import Flow, Log, pipeline
from tests.integration.rig import ddl

A = "copy.shop.a"
QUARANTINE = 'on_refused_target = "quarantine"'


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """Table a is in quarantine for a RENAME that leads out of the routes; b goes on."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, pipeline("p", "t", "[ab]", QUARANTINE))
    made.start()
    made.insert("t", "a", 3)
    made.applied("a", 3)
    log.produce("t", ddl("shop.a", "RENAME", "RENAME TABLE a TO c"))
    made.insert("t", "a", 2)
    made.until(lambda: made.phase(A) == "quarantined")
    yield made
    made.stop()


def marked(flow: Flow) -> str:
    """What the table says of its rows."""
    found: dict[str, str] = flow.pipelines()["p"]["rows_may_differ"]
    return found.get(A, "")


def shown(flow: Flow) -> Condition:
    (found,) = (one for one in conditions(flow.ask("status")) if one.kind == "quarantine")
    return found


def test_retry_meets_the_statement_again_and_the_condition_says_what_leads_out(flow: Flow) -> None:
    """Its command is not one that changes nothing."""
    assert flow.do("tables retry", target=A)[0] == 0
    flow.until(lambda: shown(flow).level == "ill")
    assert f"binlogd reload --discard {A}" == shown(flow).command
    assert "meets it again" in shown(flow).line
    assert "exclude" in shown(flow).line


def test_without_its_route_it_is_discarded_and_goes_on_with_its_next_change(flow: Flow) -> None:
    """As the runbook says it: on the running daemon, and the gap is a mark on the table."""
    flow.write(pipeline("p", "t", "[ab]", QUARANTINE + '\nexclude = ["shop.a"]'))
    assert flow.reload(discard=[A])[1] == []
    flow.write(pipeline("p", "t", "[ab]", QUARANTINE))
    assert flow.reload()[1] == []
    flow.insert("t", "a", 4)
    flow.applied("a", 7)
    flow.until(lambda: flow.phase(A) == "ready")
    flow.until(lambda: "of its spill were discarded" in marked(flow))
    assert UNWRITTEN not in marked(flow)
    flow.stop()
    flow.start()
    flow.insert("t", "a", 1)
    flow.applied("a", 8)
    flow.until(lambda: "of its spill were discarded" in marked(flow))

"""``binlogd reload`` of whole pipelines, which come and go while the others run."""

from __future__ import annotations

import pytest

from tests.integration.test_reload import Running, running

__all__ = ["running"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_pipeline_comes_goes_and_goes_on_where_it_was(running: Running) -> None:
    """Without a restart. What came while it was away is read when it is back, once."""
    running.insert("b")
    running.insert("a")
    running.applied("a", 1)
    running.write(second="b")
    status, shown, said = running.reload()
    assert (status, said) == (0, "")
    assert "pipeline.p." not in shown
    running.applied("b", 1)
    assert set(running.statuses()) == {"p", "second"}
    running.write()
    assert running.reload()[0] == 0
    assert set(running.statuses()) == {"p"}
    running.insert("b")
    running.insert("a")
    running.applied("a", 2)
    assert running.count("b") == 1
    running.write(second="b")
    assert running.reload()[0] == 0
    running.applied("b", 2)
    second = running.statuses()["second"]
    assert (second["stage"], second["messages_read"]) == ("running", 2)

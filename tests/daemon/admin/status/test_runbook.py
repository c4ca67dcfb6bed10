"""Conditions lead to pages of the runbook that are there."""

from __future__ import annotations

import re

from actors.runtime.java import CHECKOUT
from daemon.admin.status.runbook import PAGES, runbook


def test_each_page_is_there() -> None:
    """With and without a place of the documentation."""
    for kind in PAGES:
        assert (CHECKOUT / runbook(kind)).is_file(), kind
    assert runbook("quarantine", "https://d.example/") == "https://d.example/runbook/quarantine.md"
    assert runbook("tables_left_out") == ""


def test_each_kind_is_one_that_a_daemon_may_have() -> None:
    """None is left of a condition that is gone."""
    folder = CHECKOUT / "daemon/admin/status"
    texts = [path.read_text() for path in folder.glob("*.py") if path.name != "runbook.py"]
    named = set(re.findall(r'"([a-z_]+)"', "\n".join(texts)))
    assert set(PAGES) <= named | {"starting"}

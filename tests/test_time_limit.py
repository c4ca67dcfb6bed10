"""A run that has to end in time leaves out tests by name, and other ones at another commit."""

from __future__ import annotations

import time
from itertools import groupby

import pytest

from tests.time_limit import in_turn, skip_when_over


def test_each_file_begins_at_some_commit(request: pytest.FixtureRequest) -> None:
    """Nothing is left out, and a file's tests stay together."""
    items = request.session.items
    files = list(dict.fromkeys(item.path for item in items))
    for turn in (0, 1, len(files) - 1, len(files), 7919):
        found = in_turn(items, f"{turn:08x}")
        assert sorted(map(id, found)) == sorted(map(id, items))
        assert found[0].path == files[turn % len(files)]
        assert len([file for file, _ in groupby(found, key=lambda item: item.path)]) == len(files)


def test_a_test_that_would_begin_too_late_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none where no end is set."""
    monkeypatch.delenv("TEST_END", raising=False)
    skip_when_over()
    monkeypatch.setenv("TEST_END", str(time.time() + 60))
    skip_when_over()
    monkeypatch.setenv("TEST_END", str(time.time() - 1))
    with pytest.raises(pytest.skip.Exception, match="the time of this run is up"):
        skip_when_over()

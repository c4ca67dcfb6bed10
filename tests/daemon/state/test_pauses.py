"""Pauses are kept: they outlive the process, and a damaged file is never taken for none."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.state.pauses import Pause, Pauses, PausesUnreadable


def test_a_pause_outlives_the_process_until_it_is_taken_back(tmp_path: Path) -> None:
    pauses = Pauses(tmp_path / "state")
    pauses.load()
    pauses.put("p", Pause(5, "the lake moves"))
    pauses.put("q", Pause(6))
    pauses.put("q", None)
    again = Pauses(tmp_path / "state")
    again.load()
    assert again.now() == {"p": Pause(5, "the lake moves")}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 1}', '{"version": 2, "paused": {}}', '{"paused": {}}']
)
def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path, text: str) -> None:
    """Else a paused pipeline would read on without a word."""
    (tmp_path / "pauses.json").write_text(text)
    with pytest.raises(PausesUnreadable, match=r"pauses\.json"):
        Pauses(tmp_path).load()

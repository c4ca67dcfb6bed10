"""The id by which a later run knows the earlier runs of its state directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.state_id import state_id


def test_kept(tmp_path: Path) -> None:
    """It is the same at every start, and not another directory's."""
    first = state_id(tmp_path)
    assert state_id(tmp_path) == first
    (tmp_path / "other").mkdir()
    assert state_id(tmp_path / "other") != first
    assert len(first) == 12


@pytest.mark.parametrize("content", [b"", b"not an id\n", b"\xff\xfe\x00", b"0123456789AB\n"])
def test_damaged(tmp_path: Path, content: bytes) -> None:
    """A file that a crash or a person spoilt is made anew."""
    (tmp_path / "id").write_bytes(content)
    made = state_id(tmp_path)
    assert state_id(tmp_path) == made

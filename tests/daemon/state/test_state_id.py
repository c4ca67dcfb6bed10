"""The id by which a later run knows the earlier runs of its state directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.runtime.files import known_id, state_id
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.app.startup import Unusable
from daemon.config.file import load
from sparkwriter.sinks import ConfiguredSinks
from tests.daemon.state.test_offset_transfer import World


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


def test_looking_makes_none(tmp_path: Path) -> None:
    """A command may come before the first start, or from a user who may not write there."""
    assert known_id(tmp_path / "state") is None
    made = state_id(tmp_path)
    assert known_id(tmp_path) == made


def test_a_start_that_can_not_make_it_is_one_line(tmp_path: Path) -> None:
    """As on a full disk: before anything was asked or started."""
    world = World(tmp_path)
    (world.state / "id.new").mkdir()
    service = Service(load(tmp_path / "config.toml"), False, Quiet(), ConfiguredSinks())
    with pytest.raises(Unusable, match=r"daemon\.state_dir .* can't be used"):
        service.run()

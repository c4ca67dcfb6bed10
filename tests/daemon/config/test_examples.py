"""The examples of each sink are configurations that pass the check as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from actors.runtime.java import CHECKOUT
from daemon.cli.__main__ import app
from sparkwriter.sections import KINDS

EXAMPLES = sorted((CHECKOUT / "examples").glob("*.toml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_passes(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither broker nor database there."""
    monkeypatch.setenv("BINLOGD_VAR", str(tmp_path))
    result = CliRunner().invoke(app, ["check-config", "--config", str(example)])
    assert result.exit_code == 0, result.output


def test_each_kind_of_sink_has_one() -> None:
    """But for functions, whose examples are code."""
    written = {
        kind for kind in KINDS for path in EXAMPLES if f'kind = "{kind}"' in path.read_text()
    }
    assert written == KINDS.keys() - {"python"}

"""The examples of ``docs/routes.md`` are routes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from daemon.config.file import load
from tests.daemon.config.test_pipelines import BASE

PAGE = Path(__file__).parents[3] / "docs" / "routes.md"
PIPELINE = '\n[pipeline.shop]\ntopics = ["shop"]\nformat = "canal-json"\n'
EXAMPLES: list[str] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_each_key_has_an_example() -> None:
    keys = re.findall(r"^\| [^|]*\| \[`(\w+)`", PAGE.read_text(encoding="utf-8"), re.M)
    text = "".join(EXAMPLES)
    assert len(keys) >= 7
    assert [key for key in keys if not re.search(rf"\b{key}\b", text)] == []


@pytest.mark.parametrize("text", EXAMPLES)
def test_it_is_accepted(tmp_path: Path, text: str) -> None:
    """With the secret that it names."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "mask-salt").write_text("a salt of many characters")
    (tmp_path / "config.toml").write_text(BASE + PIPELINE + text)
    assert load(tmp_path / "config.toml", {}).routes("shop")[0].shape

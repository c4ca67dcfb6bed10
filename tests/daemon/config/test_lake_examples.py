"""The examples of ``docs/configuration.md`` for catalogs and object stores are configurations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from daemon.config.file import load
from sparkwriter.sinks import sinks_of

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
SECTION = re.compile(r"^## Catalogs and object stores\n(.*?)^## ", re.S | re.M)
AROUND = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


def examples() -> list[str]:
    section = SECTION.search(PAGE.read_text(encoding="utf-8"))
    assert section is not None
    found: list[str] = re.findall(r"```toml\n(.*?)```", section[1], re.S)
    return found


def test_there_is_one_for_each_kind() -> None:
    assert [re.findall(r'^type = "(\w+)"', text, re.M) for text in examples()] == [
        ["rest"], ["hive"], ["jdbc"],
    ]  # fmt: skip


@pytest.mark.parametrize("text", examples(), ids=["rest", "hive", "jdbc"])
def test_it_is_accepted(tmp_path: Path, text: str) -> None:
    """Secrets come from systemd's credentials, and nothing is missing."""
    for name in ("catalog", "lake-db"):
        (tmp_path / name).write_text("a-secret")
    (tmp_path / "config.toml").write_text(AROUND + text)
    config = load(tmp_path / "config.toml", {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert list(sinks_of(config)["lake"].problems()) == []

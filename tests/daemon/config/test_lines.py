"""The line of a key in a TOML file, however it is spelled there."""

from __future__ import annotations

import pytest

from daemon.config.lines import line_of

TEXT = '''# batch.max_byte is only named here
[batch]
max_age_s = 1.0
text = """
max_byte = 1
"""
max_byte = [
  1,
]

[pipeline.shop]
ddl.truncat = "follow"
[[pipeline.shop.route]]
target = "a"
[[pipeline.shop.route]]
target = "b"
kys = ["id"]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("batch", 2), ("batch.max_byte", 7), ("pipeline.shop.ddl.truncat", 12),
        ("pipeline.shop.route.1.kys", 17), ("pipeline.shop.route.0.kys", None), ("kys", None),
        ("batch.max_age_s.x", None),
    ],
)  # fmt: skip
def test_a_line(path: str, line: int | None) -> None:
    """Not that of a comment, of a text that holds the same words, or of a neighbour."""
    assert line_of(TEXT, path.split(".")) == line

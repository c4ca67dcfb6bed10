"""What people see of letters: nothing that steers a terminal, times with zones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from daemon.cli.base.records import readable
from daemon.cli.base.texts import one_line
from daemon.state.dead_letters.index import parse_since

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", datetime(2026, 1, 1, 23, 58, 30, tzinfo=UTC)),
        ("2h", datetime(2026, 1, 1, 22, tzinfo=UTC)),
        ("7d", datetime(2025, 12, 26, tzinfo=UTC)),
        ("2026-01-01T01:00:00+01:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_since_is_an_age_or_a_time(text: str, expected: datetime) -> None:
    """Whatever zone it is told in."""
    assert parse_since(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "h", "2y", "-2h", "99999999999999d", "today", "2026-01-01", "2026-01-01T00:00"]
)
def test_another_since_is_refused(text: str) -> None:
    """A time without a zone would be a guess."""
    with pytest.raises(ValueError, match=r"zone|is required"):
        parse_since(text, NOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None), (b"", {"text": ""}), ("\n\té".encode(), {"text": "\n\té"}),
        (b"\xff", {"base64": "/w=="}), (b"a\x1b[2J", {"base64": "YRtbMko="}),
    ],
)  # fmt: skip
def test_bytes_are_shown_as_text_where_a_terminal_may_have_it(
    value: bytes | None, expected: dict[str, str] | None
) -> None:
    """Else in base64, which any program can read back."""
    assert readable(value) == expected


def test_an_error_does_not_steer_the_terminal() -> None:
    """It may hold a piece of the record."""
    assert one_line("bad \x1b[2J value") == "bad \N{REPLACEMENT CHARACTER}[2J value"

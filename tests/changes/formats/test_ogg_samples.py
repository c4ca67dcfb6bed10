"""The GoldenGate file that Flink tests with, against what it expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changes import conformance
from tests.changes.formats import samples
from tests.changes.formats.json_messages import made


@pytest.mark.parametrize("path", conformance.cases("flink/ogg-data.txt"))
def test_changelog_of_flink(path: Path | None) -> None:
    """Each change, before and after, and what remains at the end."""
    path = path or conformance.folder() / "none"
    values, expected = samples.lines(path), samples.expectations(path)
    samples.check_changelog(made("ogg-json"), values, expected)
    samples.check_final_rows(made("ogg-json"), values, expected)

"""The GoldenGate file that Flink tests with, against what it expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changes import conformance
from tests.changes.formats import samples
from tests.changes.formats.json_messages import made


@pytest.mark.parametrize("path", conformance.cases("flink/ogg-data.txt", of="ogg-json"))
def test_changelog_of_flink(path: Path) -> None:
    """Each change, before and after, and what remains at the end."""
    values, expected = samples.lines(path), conformance.expectations(path)
    samples.check_changelog(made("ogg-json"), values, expected)
    samples.check_final_rows(made("ogg-json"), values, expected)

"""What a message counts stands in the singular where it is one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.test_ratchet import ROOT, SOURCES, trees

NOUNS = (
    "attempts|branches|changes|characters|chunks|columns|commits|connections|connectors|days|"
    "digits|entries|events|fields|files|hours|jobs|keys|lanes|letters|lines|members|messages|"
    "minutes|offsets|operations|others|partitions|pipelines|ranges|records|rows|schemas|"
    "snapshots|statements|tables|targets|times|topics|values"
)
COUNTED = re.compile(rf" (?:(?:dead|smaller|spilled) )?(?:{NOUNS})\b(?!/s)")
"""Rates have their unit in the plural, as bytes and seconds of a size or a span."""
NEVER_ONE = {"len(text)", "partitions", "self._most_scale", "source", "how", "name"}
"""More than one where it is said, or no number."""


def uncounted() -> Iterator[tuple[str, str]]:
    """Numbers before a noun in the plural. Constants of ours, in capitals, are not one."""
    for file, tree in trees(tuple(set(SOURCES) - {"demo"})).items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr):
                continue
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    shown = ast.unparse(value.value)
                    if COUNTED.match(str(text.value)) and not shown.isupper():
                        yield str(file.relative_to(ROOT)), shown


def test_nothing_is_counted_in_the_plural_alone() -> None:
    """``settings/counted.py`` makes both."""
    assert {found for found in uncounted() if found[1] not in NEVER_ONE} == set()

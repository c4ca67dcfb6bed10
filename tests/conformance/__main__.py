"""Counts, by format, how many cases of other projects' samples pass (``make conformance``).

A case is a test with the mark ``conformance``; one with the mark ``otherwise`` asserts what we
read on purpose, which is not what its project does. Every file must be read by a case that passes.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from changes.formats import FORMATS
from tests.changes import conformance

GOOD, BAD, ABSENT = 0, 1, 3
"""Statuses. ABSENT: there are no samples, so nothing is known."""

SUITES = ("tests/changes", "tests/daemon/cli/test_decode.py")
NOT_MESSAGES = frozenset(("SOURCE.txt", "expectations.json"))


class Count:
    """A plugin of pytest: how the cases end, and which files they open meanwhile."""

    def __init__(self, root: Path) -> None:
        self.ends: dict[str, Counter[str]] = defaultdict(Counter)
        self.otherwise: dict[str, set[str]] = defaultdict(set)
        self.read: dict[str, set[Path]] = defaultdict(set)
        self._root = root.resolve()
        self._opened: set[Path] | None = None
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook: while a case runs, the files that it opens."""
        if event != "open" or self._opened is None:
            return
        name = arguments[0]
        if isinstance(name, str | os.PathLike) and Path(name).is_absolute():
            self._opened.add(Path(name))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Around each test."""
        mark = item.get_closest_marker("conformance")
        if mark is None:
            return (yield)
        (name,) = mark.args
        self._opened, end = set(), "failed"
        try:
            found = yield
            end = "passed"
            return found
        finally:
            opened, self._opened = self._opened, None
            reason = item.get_closest_marker("otherwise")
            if reason is not None and end == "passed":
                end = "otherwise"
                self.otherwise[name].add(f"{reason.args[0]} ({item.name})")
            self.ends[name][end] += 1
            if end != "failed":
                self.read[name] |= self._samples(opened)

    def _samples(self, opened: set[Path]) -> set[Path]:
        """Of opened files those of messages."""
        found = (path.resolve() for path in opened)
        return {p for p in found if self._root in p.parents and p.name not in NOT_MESSAGES}


def messages(root: Path) -> set[Path]:
    """All files of messages."""
    found = (path.resolve() for path in root.rglob("*") if path.is_file())
    return {path for path in found if path.name not in NOT_MESSAGES}


def table(count: Count) -> Iterator[str]:
    """The counts, a line a format, and what is read otherwise."""
    yield f"{'format':<18}{'cases':>7}{'passed':>8}{'otherwise':>11}{'failed':>8}{'files':>7}"
    for name in sorted({*FORMATS, *count.ends}):
        ends = count.ends[name]
        numbers = f"{ends['passed']:>8}{ends['otherwise']:>11}{ends['failed']:>8}"
        yield f"{name:<18}{ends.total():>7}{numbers}{len(count.read[name]):>7}"
    for name, reasons in sorted(count.otherwise.items()):
        for reason in sorted(reasons):
            yield f"otherwise, {name}: {reason}"


def main() -> int:
    """Run them all, print the table, tell the status."""
    root = conformance.present()
    if root is None:
        print(f"conformance: nothing is counted: {conformance.absence()}", file=sys.stderr)
        return ABSENT
    count = Count(root)
    options = ["-q", "--no-header", "-m", "conformance", "-p", "no:benchmark"]
    status = pytest.main([*options, *SUITES], plugins=[count])
    print(*table(count), sep="\n")
    wanted = messages(root)
    left = sorted(wanted.difference(*count.read.values()))
    for path in left:
        print(f"no case reads {path.relative_to(root.resolve())}")
    print(f"{len(wanted) - len(left)} of {len(wanted)} files are read, of {root}")
    return BAD if left or status != pytest.ExitCode.OK else GOOD


if __name__ == "__main__":
    sys.exit(main())

"""Finds the sample messages of other projects. They are read where they are, never copied.

A test of theirs has the mark ``conformance``, with the format; its cases' ids are the files. What
we read otherwise than its project, on purpose, has the mark ``otherwise`` too, with the reason,
and its test asserts our reading. ``make conformance`` counts by these marks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "conformance"
ABSENT = Path("no-samples")


def folder() -> Path:
    """The folder that CONFORMANCE_DIR names, else the one beside the checkout.

    Without it the test is skipped, and fails where CI is set: there it must be at hand.
    """
    found = present()
    if found is not None:
        return found
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(absence())
    pytest.skip(absence())


def absence() -> str:
    """Where the samples were looked for, in a line."""
    return f"no sample messages at {_place()} (CONFORMANCE_DIR names another place)"


def present() -> Path | None:
    """The same folder, None where it is missing: for naming a test's cases."""
    found = _place()
    return found if found.is_dir() else None


def _place() -> Path:
    named = os.environ.get("CONFORMANCE_DIR")
    return Path(named).absolute() if named else BESIDE


def cases(
    *patterns: str, of: str | None = None, otherwise: Mapping[str, str] | None = None
) -> list[Any]:
    """The files of the patterns as parameters of a test, their ids the paths.

    ``of``: the format, which makes them cases of ``make conformance``. ``otherwise``: by a file's
    name why we read it otherwise. Without samples a lone case, which is skipped.
    """
    root = _place()
    found = sorted(path for pattern in patterns for path in root.glob(pattern) if path.is_file())
    return [
        case(
            path, id=str(path.relative_to(root)), of=of, otherwise=(otherwise or {}).get(path.name)
        )
        for path in found
        if path.name != "SOURCE.txt"
    ] or [case(ABSENT, id="no-samples", of=of)]


def case(*values: Any, id: str, of: str | None = None, otherwise: str | None = None) -> Any:
    """One parameter of a test, marked; see ``cases``."""
    marks = [pytest.mark.conformance(of)] if of else []
    if otherwise:
        marks.append(pytest.mark.otherwise(otherwise))
    return pytest.param(*values, id=id, marks=marks)


CANAL = ("flink/canal*.txt", "inlong/canal*.txt")
"""Files of Canal's JSON with expectations."""


def expectations(path: Path) -> dict[str, Any]:
    """What a file's project expects of it, with its folder's ``columns`` where it names none."""
    whole = json.loads((path.parent / "expectations.json").read_text())
    return {"columns": whole.get("columns")} | whole["files"][path.name]

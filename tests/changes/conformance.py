"""Finds the sample messages of other projects. They are read where they are, never copied."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "conformance"


def folder() -> Path:
    """The folder that CONFORMANCE_DIR names, else the one beside the checkout.

    Without it the test is skipped, and fails where CI is set: there it must be at hand.
    """
    found = present()
    if found is not None:
        return found
    found = _place()
    reason = f"no sample messages at {found} (CONFORMANCE_DIR names another place)"
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(reason)
    pytest.skip(reason)


def cases(pattern: str) -> list[Any]:
    """The files of a pattern as parameters of a test, their ids the paths. Without samples one
    that is None: the test calls ``folder``, which tells so."""
    root = _place()
    found = [pytest.param(p, id=str(p.relative_to(root))) for p in sorted(root.glob(pattern))]
    return found or [pytest.param(None, id="no-samples")]


def present() -> Path | None:
    """The same folder, None where it is missing: for naming a test's cases."""
    found = _place()
    return found if found.is_dir() else None


def _place() -> Path:
    named = os.environ.get("CONFORMANCE_DIR")
    return Path(named) if named else BESIDE


def canal_files() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every file of Canal messages with what is expected of it."""
    for path in sorted(folder().glob("*/expectations.json")):
        expectations = json.loads(path.read_text())
        for name, expected in expectations.get("files", {}).items():
            if name.startswith("canal"):
                own = {"columns": expectations.get("columns")}
                yield path.parent / name, own | expected

"""The wheel, built once for the tests of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def tracked(*folders: str) -> set[str]:
    """The files of these folders that belong to the project."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name for name in found.stdout.split("\0") if name and (CHECKOUT / name).exists()}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the project, so that no other build's files can be in it."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / name, source / name)
    pages = [sys.executable, source / "setup" / "man_pages.py", source / "build" / "pages"]
    subprocess.run(pages, check=True, timeout=120)
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
         "--no-build-isolation", "--disable-pip-version-check", "-w", folder, source],
        check=True, timeout=120, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip
    (found,) = folder.glob("*.whl")
    return found

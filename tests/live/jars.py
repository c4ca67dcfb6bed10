"""The readers' own jars: fetched by ``make live`` alone, hash-checked.

A list is ``NAME.xml`` with ``NAME.lock`` beside it, as ``jars/`` has them for binlogd itself; its
jars are in ``var/live/NAME/PART``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from actors.runtime.jars import JarList, JarsError, fetch, fetch_extra, write_lock
from actors.runtime.java import CHECKOUT
from collector.jars import EXTRA

HERE = Path(__file__).parent
FOLDER = CHECKOUT / "var" / "live"


def lists() -> list[str]:
    """The names of the lists there are."""
    return sorted(path.stem for path in HERE.glob("*.xml"))


def jar_list(name: str) -> JarList:
    """A list by its name."""
    return JarList(HERE / f"{name}.xml", HERE / f"{name}.lock")


def jars_of(name: str) -> Path:
    """Give the folder with a list's jars, fetched where they are missing; raises JarsError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fetch(FOLDER / name, jar_list(name))
    return FOLDER / name


def bring_collector() -> None:
    """Fetch Kafka Connect and Debezium where they are missing: binlogd's own extra of that name.

    Raises JarsError.
    """
    fetch_extra(EXTRA)


def classpath(folder: Path) -> str:
    """Give all jars of a folder as a class path; raises JarsError where there are none."""
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise JarsError(f"no jars in {folder}")
    return os.pathsep.join(str(jar) for jar in jars)


def main() -> int:
    """``python -m tests.live.jars lock NAME...``, after a change of a list."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.jars", description=__doc__)
    parser.add_argument("action", choices=["lock"])
    parser.add_argument("names", nargs="+", choices=lists(), metavar="NAME")
    options = parser.parse_args()
    try:
        for name in options.names:
            print(f"{name}: {write_lock(jar_list(name))} jars locked")
    except JarsError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
